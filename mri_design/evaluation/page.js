// What a report can do where scripts run: parts that open together, tables that sort, and the steps of a design one by one.
// Without it the page is complete: parts open one by one, tables stand as they are, and figures show every step.
"use strict";

// ---- parts ----

const parts = [...document.querySelectorAll("details")];

function reveal() { // the part that the address names, for browsers that leave it closed
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = named && named.closest("details");
  if (part) { part.open = true; named.scrollIntoView(); }
}

function opensAll(button) {
  const told = () => { button.textContent = parts.every(part => part.open) ? "Close all" : "Open all"; };
  button.addEventListener("click", () => {
    const open = !parts.every(part => part.open);
    parts.forEach(part => { part.open = open; });
    told();
  });
  parts.forEach(part => part.addEventListener("toggle", told));
  button.hidden = false;
}

let closed = []; // by printing
addEventListener("beforeprint", () => { closed = parts.filter(part => !part.open); closed.forEach(part => { part.open = true; }); });
addEventListener("afterprint", () => closed.forEach(part => { part.open = false; }));
addEventListener("hashchange", reveal);
document.querySelectorAll(".more button:not([data-copies])").forEach(opensAll);
reveal();

// ---- what is copied ----

function copies(button) {
  const source = document.getElementById(button.dataset.copies), named = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      button.textContent = "Copied";
    } catch { // pages that browsers do not trust with the clipboard
      getSelection().selectAllChildren(source);
      button.textContent = "Selected: copy it with the keyboard";
    }
    setTimeout(() => { button.textContent = named; }, 3000);
  });
  button.hidden = false;
}

document.querySelectorAll("button[data-copies]").forEach(copies);

// ---- tables ----

const number = text => {
  const plain = text.replace("\u2212", "-").replace(/[%,\s]/g, "");
  return plain !== "" && !isNaN(plain) ? Number(plain) : NaN;
};

function compare(a, b) {
  const [x, y] = [number(a), number(b)];
  if (!isNaN(x) && !isNaN(y)) return x - y;
  if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
  return a.localeCompare(b, undefined, {numeric: true});
}

function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) return;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = row => row.cells[column].textContent.trim();
      const known = [...body.rows].filter(row => text(row) !== "");
      const empty = [...body.rows].filter(row => text(row) === "");
      known.sort((a, b) => (down ? -1 : 1) * compare(text(a), text(b)));
      body.append(...known, ...empty); // rows without a value stay below
    });
  });
}

// ---- the steps of a design ----

const LEFT = 60, WIDTH = 720, BARS = 26, TOP = 70, HEIGHT = 220; // the picture begins so far left of its first line

function drawn(parent, name, attributes) {
  const element = document.createElementNS(parent.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

function explorer(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const slider = figure.querySelector("input"), says = figure.querySelector(".says");
  const reads = figure.querySelector(".reads"), plot = figure.querySelector("svg");
  const pictures = figure.querySelector(".pictures");
  const wide = WIDTH / data.lines, first = data.start.length;
  const ky = line => String(line - Math.floor(data.lines / 2)).replace("-", "\u2212");
  const shortly = value => Number(value.toPrecision(2)) < 1e4 ? String(Number(value.toPrecision(2))) : value.toExponential(1).replace("+", "");
  const shown = value => value === null ? "no candidate" : String(value);
  let step = 0, pointed = null;

  if (!data.steps.some(each => each.scores)) plot.setAttribute("viewBox", `-60 0 780 ${BARS}`);
  const scores = () => data.steps.length ? data.steps[Math.max(step - 1, 0)].scores : null;

  function draw() {
    plot.replaceChildren();
    const measured = new Set(data.start), newest = step ? data.steps[step - 1].line : null;
    data.steps.slice(0, step).forEach(each => measured.add(each.line));
    for (let line = 0; line < data.lines; line++) {
      const kind = line === newest ? "newest" : measured.has(line) ? "measured" : "open";
      drawn(plot, "rect", {class: kind, x: line * wide, y: 0, width: Math.max(wide - (wide > 3 ? 0.6 : 0), 0.4), height: BARS});
    }
    const values = scores();
    if (values) {
      const known = values.filter(value => value !== null);
      const low = Math.min(...known, 0), high = Math.max(...known), span = high - low || 1;
      const at = (line, value) => [(line + 0.5) * wide, HEIGHT - (HEIGHT - TOP) * (value - low) / span];
      const says = (x, y, text, anchor) => { drawn(plot, "text", {x, y, "text-anchor": anchor}).textContent = text; };
      drawn(plot, "path", {class: "axis", d: `M0 ${TOP}V${HEIGHT}H${WIDTH}`});
      says(0, TOP - 14, data.unit, "start");
      for (const value of [low, high]) says(-6, at(0, value)[1] + 5, shortly(value), "end");
      for (const line of [0, Math.floor(data.lines / 2), data.lines - 1])
        says(at(line, 0)[0], HEIGHT + 24, line ? ky(line) : `ky ${ky(line)}`, line < data.lines - 1 ? "middle" : "end");
      let path = "", points = "", pen = false;
      values.forEach((value, line) => {
        const place = value !== null && at(line, value).map(c => c.toFixed(1)).join(" ");
        if (place) [path, points] = [path + (pen ? "L" : "M") + place, `${points}M${place}h.01`];
        pen = value !== null;
      });
      drawn(plot, "path", {class: "curve", d: path});
      drawn(plot, "path", {class: "curve points", d: points});
      const next = step ? newest : data.steps[0].line;
      if (values[next] !== null) {
        const [x, y] = at(next, values[next]);
        drawn(plot, "circle", {class: "newest", cx: x, cy: y, r: 4.5});
      }
    }
    if (pointed !== null) drawn(plot, "rect", {class: "pointed", x: pointed * wide, y: 0, width: Math.max(wide, 1), height: HEIGHT});
  }

  function read() {
    if (pointed === null) { reads.textContent = `Point at a line, or use the arrow keys on the picture, to read ${scores() ? "its score" : "when it was measured"}.`; return; }
    const values = scores(), order = [...data.start, ...data.steps.slice(0, step).map(each => each.line)].indexOf(pointed);
    const state = order < 0 ? "not measured" : order < first ? "a start line" : `measured as number ${order + 1}`;
    reads.textContent = `ky ${ky(pointed)} (line ${pointed}): ${state}` + (values ? `; ${data.unit}: ${shown(values[pointed])}` : "");
  }

  function show(to) {
    step = to;
    slider.value = String(step);
    const now = first + step, last = step ? data.steps[step - 1] : null;
    let text = `${now} of ${data.lines} lines`;
    text += last ? `; the last one is ky ${ky(last.line)}` : ", the start";
    says.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    draw();
    read();
    if (pictures && data.images.length) {
      const past = data.images.filter(each => each.count <= now), image = past.length ? past[past.length - 1] : data.images[0];
      pictures.querySelectorAll("div").forEach(box => {
        const source = image[box.dataset.what];
        box.hidden = !source;
        if (source) { box.querySelector("img").src = source; box.querySelector("img").alt = `${box.dataset.what}, ${image.count} lines`; }
      });
      pictures.querySelector("p").textContent = `The posterior mean of ${image.count} lines` +
        (image.error ? `: error ${image.error}.` : ".");
    }
  }

  function point(line) {
    pointed = line === null ? null : Math.min(Math.max(line, 0), data.lines - 1);
    draw();
    read();
  }

  plot.addEventListener("pointermove", event => {
    const box = plot.getBoundingClientRect();
    point(Math.floor(((event.clientX - box.left) / box.width * (LEFT + WIDTH) - LEFT) / wide));
  });
  plot.addEventListener("pointerleave", () => point(null));
  plot.addEventListener("keydown", event => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by) { point((pointed === null ? Math.floor(data.lines / 2) : pointed) + by); event.preventDefault(); }
  });
  slider.max = String(data.steps.length);
  slider.addEventListener("input", () => show(Number(slider.value)));
  for (const button of figure.querySelectorAll("button[data-by]"))
    button.addEventListener("click", () => show(Math.min(Math.max(step + Number(button.dataset.by), 0), data.steps.length)));
  figure.hidden = false;
  show(data.steps.length);
}

// ---- the slices of a volume ----

function slices(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const slider = figure.querySelector("input"), says = figure.querySelector(".says");

  function show(to) {
    const at = Math.min(Math.max(to, 0), data.slices.length - 1), slice = data.slices[at];
    slider.value = String(at);
    const place = data.slices.length < data.count ? `picture ${at + 1} of ${data.slices.length}` : `${at + 1} of ${data.count}`;
    const text = `slice ${slice.number} (${place})` + (slice.text ? `; ${slice.text}` : "");
    says.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    figure.querySelectorAll(".pictures div").forEach(box => {
      const source = slice[box.dataset.what], picture = box.querySelector("img");
      box.hidden = !source;
      if (source) { picture.src = source; picture.alt = `${box.querySelector("span").textContent} of slice ${slice.number}`; }
    });
  }

  slider.max = String(data.slices.length - 1);
  slider.addEventListener("input", () => show(Number(slider.value)));
  for (const button of figure.querySelectorAll("button[data-by]"))
    button.addEventListener("click", () => show(Number(slider.value) + Number(button.dataset.by)));
  figure.hidden = false;
  show(data.start);
}

// ---- an image pixel by pixel ----

const FLICKER = 700, FAINT = 0.05; // milliseconds; part of white below which a relative error says nothing

function inspector(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent), bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const canvas = figure.querySelector("canvas"), mark = figure.querySelector("i"), reads = figure.querySelector(".reads");
  const context = canvas.getContext("2d"), colours = bytes(data.colours), digits = value => value.toPrecision(3);
  const views = data.views.map(view => {
    const words = new Uint16Array(bytes(view.values).buffer), step = Number(view.largest) / 65535;
    return {name: view.name, error: view.error, top: Number(view.top), at: Float32Array.from(words, word => word * step)};
  });
  const image = views[0], spread = views.find(view => view.error), others = views.filter(view => view !== image && view !== spread);
  if (spread) {
    const at = spread.at.map((value, place) => image.at[place] > FAINT * image.top ? value / image.at[place] : 0);
    views.splice(2, 0, {name: "relative sd (brightest: 50 %)", error: true, top: 0.5, at});
  }
  let shown = image, before = views[1] || image, pixel = null, flickering = null;

  function draw(view) {
    if (view !== shown) [before, shown] = [shown, view];
    const picture = context.createImageData(data.columns, data.rows);
    view.at.forEach((value, place) => {
      const shade = Math.min(255, Math.round(255 * value / view.top));
      for (let part = 0; part < 3; part++) picture.data[4 * place + part] = view.error ? colours[3 * shade + part] : shade;
      picture.data[4 * place + 3] = 255;
    });
    context.putImageData(picture, 0, 0);
    buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(views[number] === view)));
  }

  function read() {
    if (!pixel) { reads.textContent = "Point at a pixel to read its value."; return; }
    const [row, column] = pixel, place = row * data.columns + column, value = image.at[place];
    const index = [row, column].map(number => number * data.step);
    if (data.across) index.reverse();
    let text = `pixel [${index.join(", ")}]: ${digits(value)}`;
    if (spread) {
      const sd = spread.at[place], low = Math.max(0, value - 2 * sd);
      text += ` \u00b1 ${digits(2 * sd)} (${digits(low)} to ${digits(value + 2 * sd)})`;
      if (value > FAINT * image.top) text += `, sd ${(100 * sd / value).toPrecision(2)} %`;
    }
    reads.textContent = text + others.map(other => `; ${other.name} ${digits(other.at[place])}`).join("");
    Object.assign(mark.style, {left: `${100 * (column + 0.5) / data.columns}%`, top: `${100 * (row + 0.5) / data.rows}%`,
      width: `${100 / data.columns}%`, height: `${100 / data.rows}%`});
  }

  function point(row, column) {
    pixel = [Math.min(Math.max(row, 0), data.rows - 1), Math.min(Math.max(column, 0), data.columns - 1)];
    read();
  }

  function flicker(on) {
    clearInterval(flickering);
    flickering = on ? setInterval(() => draw(before), FLICKER) : null;
    last.setAttribute("aria-pressed", String(on));
  }

  function button(name, act) {
    const made = document.createElement("button");
    Object.assign(made, {type: "button", textContent: name});
    made.addEventListener("click", act);
    figure.querySelector(".views").append(made);
    return made;
  }

  const choose = view => { flicker(false); draw(view); };
  const buttons = views.map(view => button(view.name, () => choose(view)));
  const last = button("flicker", () => flicker(flickering === null));
  const pointed = event => {
    const box = event.target.getBoundingClientRect();
    point(Math.floor((event.clientY - box.top) / box.height * data.rows), Math.floor((event.clientX - box.left) / box.width * data.columns));
  };
  canvas.addEventListener("pointermove", pointed);
  document.querySelectorAll(".read img").forEach(picture => picture.addEventListener("pointermove", event => {
    pointed(event);
    picture.title = reads.textContent;
  }));
  canvas.addEventListener("keydown", event => {
    const by = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    const [row, column] = pixel || [data.rows >> 1, data.columns >> 1], view = views[Number(event.key) - 1];
    if (by) { point(row + by[0], column + by[1]); event.preventDefault(); }
    else if (view) choose(view);
    else if (event.key === "f" || event.key === "F") flicker(flickering === null);
  });
  last.hidden = views.length < 2;
  figure.hidden = false;
  choose(image);
  read();
}

document.querySelectorAll(".wide table").forEach(sortable);
document.querySelectorAll("figure.explorer:not(.slices, .inspector)").forEach(explorer);
document.querySelectorAll("figure.inspector").forEach(inspector);
document.querySelectorAll("figure.slices").forEach(slices);
