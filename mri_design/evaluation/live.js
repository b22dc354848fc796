// The page of a design that runs: every state that the program sends replaces what has changed. Buttons need the token.
"use strict";

const now = document.getElementById("now"), orders = document.querySelector(".orders"), answer = orders.querySelector("output");
const token = new URLSearchParams(location.search).get("token");
const report = document.getElementById("report");
let states = null, ended = false;

function become(old, fresh) { // images stay elements, so that none flickers while it is decoded
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || old.nodeType !== Node.ELEMENT_NODE) { old.replaceWith(fresh); return; }
  for (const {name} of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [was, is] = [[...old.childNodes], [...fresh.childNodes]];
  is.forEach((node, place) => { if (was[place]) become(was[place], node); else old.append(node); });
  was.slice(is.length).forEach(node => node.remove());
}

function listen() {
  states = new EventSource("events");
  states.onmessage = event => {
    const fresh = new DOMParser().parseFromString(`<div id="now">${JSON.parse(event.data)}</div>`, "text/html").body.firstChild;
    become(now, fresh);
    document.body.dataset.states = String(Number(document.body.dataset.states || 0) + 1);
    if (answer.dataset.lost) { answer.textContent = ""; delete answer.dataset.lost; }
  };
  states.addEventListener("report", event => { // it stays in the browser when the program has ended
    report.querySelector("a").href = URL.createObjectURL(new Blob([JSON.parse(event.data)], {type: "text/html"}));
    report.hidden = false;
  });
  states.addEventListener("end", () => { states.close(); ended = true; orders.querySelectorAll("button").forEach(button => { button.disabled = true; }); });
  states.onerror = () => { if (!ended) { answer.dataset.lost = "yes"; answer.textContent = "The program does not answer; this is its last state."; } };
}

async function order(what) {
  const given = await fetch(what, {method: "POST", headers: {"X-Token": token}}).catch(() => null);
  const says = {204: what === "enough" ? "It ends after the lines that are measured now." : "Ten more are wanted.", 403: "The token is not that of this run.", 409: "There is no design that could be changed now."};
  answer.textContent = (given && says[given.status]) || "The program does not answer.";
}

orders.querySelectorAll("button").forEach(button => button.addEventListener("click", () => order(button.dataset.order)));
if (token) orders.hidden = false;
document.addEventListener("visibilitychange", () => { // a browser has few connections for each address
  if (document.hidden) states.close(); else if (!ended) listen();
});
listen();
