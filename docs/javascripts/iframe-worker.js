/* The search of these pages runs in a worker. Browsers refuse workers to pages that are opened as files, so there the
   same script runs in a frame without size, which answers the same messages. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      const script = document.createElement("script");
      script.src = new URL(address, document.baseURI).href;
      frame.hidden = true;
      frame.srcdoc = script.outerHTML;
      frame.addEventListener("load", () => {
        this.inside = frame.contentWindow;
        this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      (document.body || document.documentElement).append(frame);
    }

    postMessage(data) {
      if (this.inside) {
        this.inside.dispatchEvent(new MessageEvent("message", { data }));
      } else {
        this.waiting.push(data);
      }
    }
  };
}
