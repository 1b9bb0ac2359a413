// The explorer's page: controls make a question, the server answers, canvases show it. No library, no network.

import {compare, duration, per, short, ticks} from "./numbers.js";

const find = id => document.getElementById(id);
const TIMES = {1: [11, 21, 41, 81, 161], 2: [5, 11, 21, 41], 3: [5, 11, 21]};
const POWER = {1: "", 2: "²", 3: "³"};
const MODES = 4;
const DRAWN = 128;
const PAUSE = 40; // milliseconds in which moves are gathered before the surrogate is asked
const REST = 120; // milliseconds without a move before the solver is, which would slow down the surrogate
const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const DIVERGING = ["#2d004b", "#542788", "#8073ac", "#b2abd2", "#d8daeb", "#f7f7f7", "#fee0b6", "#fdb863", "#e08214", "#b35806", "#7f3b08"];
const page = Array.from(crypto.getRandomValues(new Uint32Array(2)), n => n.toString(36)).join("");

let models = [];
let model;          // the description of the chosen one
let shape;          // preset, seed, modes and drawn lines
let shown = {};     // the answers on the screen: surrogate, solver, and the question they belong to
let wanted, asking; // whether something has moved since the last question, and whether that is under way
let waiting, resting, playing, pen;

// ---------------------------------------------------------------- talking to the server

async function send(address, question) {
  const reply = await fetch(address, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(question),
  });
  if (reply.ok) return reply;
  const {error} = await reply.json().catch(() => ({error: `The server answered ${reply.status}.`}));
  throw Object.assign(new Error(error), {status: reply.status});
}

function floats(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

async function receive(reply) {
  const answer = await reply.json();
  return {...answer, t: floats(answer.t), x: answer.x.map(floats), u: floats(answer.u)};
}

function question() {
  const params = {};
  for (const {name, start} of model.parameters) {
    const text = find(`parameter-${name}`).value; // empty, too, where what was typed is no number
    if (text === "") throw new Error(`${name} has no value. Enter a number, e.g. ${start}.`);
    params[name] = Number(text);
  }
  return {
    model: models.indexOf(model), page, params, state: structuredClone(shape),
    points: grid()[0],
    times: Number(find("times").value), last: Number(find("last").value),
  };
}

// One question at a time is under way; whatever was moved meanwhile makes the next one.
function ask() {
  clearTimeout(resting);
  wanted = true;
  find("view").classList.add("busy");
  if (!waiting && !asking) waiting = setTimeout(answer, PAUSE);
}

async function answer() {
  const mine = model;
  [waiting, wanted, asking] = [undefined, false, true];
  try {
    const now = question();
    const surrogate = await receive(await send("/api/predict", now));
    if (mine !== model) return;
    shown = {question: now, surrogate, solver: null, solving: !wanted && model.ndim === 1 && model.solver};
    if (shown.solving) resting = setTimeout(solve, REST, shown);
    find("error").textContent = "";
    fitTime();
    if (model.ndim === 3) fitSlice();
    draw();
  } catch (error) {
    if (wanted || error.status === 409) return;
    find("error").textContent = error.message;
    shown.solving = false;
    draw();
  } finally {
    asking = false;
    if (wanted) waiting = setTimeout(answer, 0);
    else find("view").classList.remove("busy");
  }
}

function solveNow() {
  if (!shown.question || shown.solver || shown.solving) return;
  shown.solving = true;
  draw();
  solve(shown);
}

// An answer that comes late belongs to what was shown when it was asked for.
async function solve(mine) {
  try {
    mine.solver = await receive(await send("/api/solve", mine.question));
  } catch (error) {
    if (mine === shown && error.status !== 409) find("error").textContent = error.message;
  } finally {
    mine.solving = false;
    if (mine === shown) draw();
  }
}

// ---------------------------------------------------------------- controls

function option(select, value, text) {
  select.add(new Option(text ?? value, value));
}

function choose(number) {
  model = models[number];
  shape = {preset: model.ndim === 1 ? "two sines" : "random", seed: 0, modes: {}, drawn: {}};
  stop();
  clear();
  const weights = model.weights.toLocaleString("en");
  find("about").textContent = `${model.model}, ${weights} weights; trained on ${model.trained || model.problem}. `
    + (model.solver ? "" : "There is no solver for this problem here. ")
    + Object.entries(model.assumed).map(([name, value]) => `The solver takes ${name} = ${value}. `).join("");
  for (const id of ["channel", "preset", "times", "last"]) find(id).replaceChildren();
  model.channels.forEach(({name}) => option(find("channel"), name));
  model.presets.forEach(name => option(find("preset"), name));
  find("preset").value = shape.preset;
  find("channel-row").hidden = model.channels.length === 1;
  find("points").max = model.grids.length - 1;
  find("points").value = model.grid;
  TIMES[model.ndim].forEach(count => option(find("times"), count, `${count} frames`));
  find("times").value = {1: 41, 2: 11, 3: 5}[model.ndim];
  [0.5, 1, 1.5, 2].forEach(part => {
    const last = Number((part * model.horizon).toPrecision(6));
    option(find("last"), last, `t = ${last}${part === 1 ? " (as trained)" : part > 1 ? " (beyond training)" : ""}`);
  });
  find("last").selectedIndex = 1;
  find("line-part").hidden = model.ndim !== 1;
  find("pictures").classList.toggle("square", model.ndim > 1);
  find("slice-row").hidden = model.ndim !== 3;
  find("solve").hidden = model.ndim === 1 || !model.solver;
  find("parameters-part").hidden = !model.parameters.length;
  find("parameters").replaceChildren(...model.parameters.map(parameter));
  find("modes").replaceChildren(...Array.from({length: MODES}, (_, k) => mode(k)));
  find("time").max = find("time").value = find("times").value - 1;
  showShape();
  ask();
}

function parameter({name, trained, low, high, start, logarithmic}) {
  const part = document.createElement("div");
  part.className = "parameter";
  part.innerHTML = '<div class="row"><label></label><input type="range" min="0" max="200" step="1">'
    + '<input type="number" step="any"></div><p class="hint"></p>';
  const [label, slider, box] = [part.querySelector("label"), ...part.querySelectorAll("input")];
  const value = place => logarithmic ? low * (high / low) ** (place / 200) : low + (high - low) * place / 200;
  const place = number => 200 * (logarithmic ? Math.log(number / low) / Math.log(high / low) : (number - low) / (high - low));
  label.textContent = name;
  label.htmlFor = `slider-${name}`;
  slider.id = `slider-${name}`;
  box.id = `parameter-${name}`;
  box.setAttribute("aria-label", `${name}, exact value`);
  // Three digits of what the slider spans, which may be a small part of the values.
  const digits = 3 + Math.max(0, Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))));
  box.value = start;
  slider.value = place(start);
  slider.setAttribute("aria-valuetext", box.value);
  slider.addEventListener("input", () => {
    box.value = Number(value(Number(slider.value)).toPrecision(digits));
    slider.setAttribute("aria-valuetext", box.value);
    ask();
  });
  box.addEventListener("input", () => {
    if (box.value === "") return; // something else is about to be typed
    slider.value = place(Number(box.value));
    ask();
  });
  box.addEventListener("change", () => { if (box.value === "") ask(); });
  const range = trained && [...new Set(trained.map(end => short(end, trained[1] - trained[0])))].join(" to ");
  part.querySelector(".hint").textContent = range ? `trained on ${range}${logarithmic ? ", logarithmic" : ""}` : "";
  return part;
}

function mode(k) {
  const row = document.createElement("div");
  row.className = "row";
  row.innerHTML = '<label></label><input type="range" min="-1" max="1" step="0.02" value="0"><output></output>';
  const [label, slider, output] = row.children;
  label.textContent = `${k + 1} wave${k ? "s" : ""}`;
  label.htmlFor = slider.id = `mode-${k + 1}`;
  output.htmlFor = slider.id;
  slider.addEventListener("input", () => {
    const amplitudes = shape.modes[channel().name] ??= new Array(MODES).fill(0);
    amplitudes[k] = Number((slider.value * channel().half).toPrecision(4));
    showShape();
    ask();
  });
  return row;
}

const grid = () => model.grids[find("points").value];
const spell = sides => sides.every(side => side === sides[0]) ? sides[0] + POWER[sides.length] : sides.join("×");
const channel = () => model.channels[Math.max(0, find("channel").selectedIndex)];

function showShape() {
  const {name, half} = channel();
  const amplitudes = shape.modes[name] ?? new Array(MODES).fill(0);
  amplitudes.forEach((amplitude, k) => {
    const slider = find(`mode-${k + 1}`);
    slider.value = amplitude / half;
    slider.nextElementSibling.textContent = short(amplitude);
  });
  find("preset").value = shape.preset;
  find("seed").value = shape.seed;
  find("reset").textContent = shape.drawn[name] ? "Remove what was drawn" : "Remove the waves";
  find("seed-row").hidden = shape.preset !== "random";
  find("modes-hint").textContent = `Add sine waves to ${name}:`;
  find("points-value").textContent = spell(grid());
}

function fitTime() {
  const slider = find("time");
  const part = slider.max > 0 ? slider.value / slider.max : 1;
  slider.max = shown.surrogate.shape[0] - 1;
  slider.value = Math.round(part * slider.max);
}

// The slice stays at its place when the points change; at first it goes through the middle.
function fitSlice() {
  const slider = find("slice"), depth = shown.surrogate.shape[3];
  const part = slider.max > 0 ? slider.value / slider.max : 0.5;
  slider.max = depth - 1;
  slider.value = Math.round(part * slider.max);
}

function stop() {
  clearInterval(playing);
  playing = undefined;
  find("play").textContent = "Play";
  find("play").setAttribute("aria-pressed", "false");
}

function play() {
  if (playing) return stop();
  find("play").textContent = "Stop";
  find("play").setAttribute("aria-pressed", "true");
  playing = setInterval(() => {
    const slider = find("time");
    slider.value = Number(slider.value) >= Number(slider.max) ? 0 : Number(slider.value) + 1;
    draw();
  }, Math.max(60, 3000 / (Number(find("time").max) + 1)));
}

// ---------------------------------------------------------------- arrays

// One channel of an answer, [t, x], [t, x, y] or [t, x, y, z] as one flat array.
function field(answer, index) {
  const count = model.channels.length;
  if (count === 1) return answer.u;
  const values = new Float32Array(answer.u.length / count);
  for (let i = 0; i < values.length; i++) values[i] = answer.u[i * count + index];
  return values;
}

// A channel of what is shown; kept until another one or the solver's answer is, since every move of a slider draws.
function fields(which) {
  const {surrogate, solver, fields: known} = shown;
  if (known?.which === which && known.solver === solver) return known;
  return shown.fields = {which, solver, ...compare(field(surrogate, which), solver && field(solver, which))};
}

// ---------------------------------------------------------------- drawing

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function prepare(canvas) {
  const {clientWidth: width, clientHeight: height} = canvas;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const brush = canvas.getContext("2d");
  brush.scale(scale, scale);
  brush.font = "12px system-ui, sans-serif";
  return {brush, width, height};
}

const MARGIN = {left: 52, right: 10, top: 22, bottom: 20};

// Axes with ticks; returns where a point of the plot lies on the canvas.
function frame(brush, width, height, xs, ys, title) {
  const {left, right, top, bottom} = MARGIN;
  const place = {
    x: value => left + (value - xs[0]) / (xs[1] - xs[0]) * (width - left - right),
    y: value => height - bottom - (value - ys[0]) / (ys[1] - ys[0]) * (height - top - bottom),
  };
  brush.lineWidth = 1;
  brush.strokeStyle = colour("grid");
  brush.fillStyle = colour("soft");
  brush.textAlign = "right";
  brush.textBaseline = "middle";
  for (const tick of ticks(ys, Math.max(2, height / 60))) {
    brush.beginPath();
    brush.moveTo(left, place.y(tick));
    brush.lineTo(width - right, place.y(tick));
    brush.stroke();
    brush.fillText(short(tick, ys[1] - ys[0]), left - 6, place.y(tick));
  }
  brush.textAlign = "center";
  for (const tick of ticks(xs, width / 110)) brush.fillText(short(tick, xs[1] - xs[0]), place.x(tick), height - bottom / 2 + 1);
  brush.textAlign = "left";
  brush.fillText(title, left, top / 2 - 1);
  return place;
}

function line(brush, place, x, values, shade, {width = 2, dash = []} = {}) {
  brush.beginPath();
  brush.strokeStyle = shade;
  brush.lineWidth = width;
  brush.setLineDash(dash);
  let lifted = true;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) { lifted = true; return; }
    brush[lifted ? "moveTo" : "lineTo"](place.x(x[i]), place.y(value));
    lifted = false;
  });
  brush.stroke();
  brush.setLineDash([]);
}

function legend(brush, width, entries) {
  brush.textAlign = "left";
  brush.textBaseline = "middle";
  let at = width - MARGIN.right - entries.reduce((sum, [name]) => sum + brush.measureText(name).width + 38, 0) + 8;
  for (const [name, shade, dash] of entries) {
    brush.beginPath();
    brush.strokeStyle = shade;
    brush.lineWidth = 2.5;
    brush.setLineDash(dash);
    brush.moveTo(at, 10);
    brush.lineTo(at + 20, 10);
    brush.stroke();
    brush.setLineDash([]);
    brush.fillStyle = colour("text");
    brush.fillText(name, at + 25, 10);
    at += brush.measureText(name).width + 38;
  }
}

let plot; // how the upper plot maps its axes, for the pen

function drawLines({own, other, difference, range, reach}, index) {
  const canvas = find("lines");
  const {brush, width, height} = prepare(canvas);
  const {surrogate: {x: [x]}} = shown;
  const count = x.length;
  const row = values => values.subarray(index * count, (index + 1) * count);
  const initial = pen ? Float32Array.from(x, (_, i) => pen.values[Math.floor(i * DRAWN / count)]) : own.subarray(0, count);
  let [low, high] = pen ? pen.bounds : range;
  if (!pen) {
    const room = Math.max(0.12 * (high - low), 0.1 * channel().half);
    [low, high] = [low - room, high + room];
  }
  const unit = model.units[channel().name];
  const place = frame(brush, width, height, model.domain[0], [low, high], channel().name + (unit ? ` (${unit})` : ""));
  plot = {low, high, width, height};
  line(brush, place, x, initial, colour("initial"), {width: 1.6, dash: [2, 3]});
  if (!pen && other) line(brush, place, x, row(other), colour("solver"), {width: 3.2});
  if (!pen) line(brush, place, x, row(own), colour("surrogate"), {dash: other ? [7, 4] : []});
  legend(brush, width, [["initial", colour("initial"), [2, 3]], ["reference", colour("solver"), []], ["surrogate", colour("surrogate"), [7, 4]]]);

  const below = prepare(find("difference"));
  const room = 1.1 * Math.max(reach, 1e-6);
  const flat = frame(below.brush, below.width, below.height, model.domain[0], [-room, room], "surrogate − reference");
  if (difference && !pen) line(below.brush, flat, x, row(difference), colour("error"));
}

function shadeTable(stops) {
  const parts = stops.map(stop => [1, 3, 5].map(i => parseInt(stop.slice(i, i + 2), 16)));
  return Array.from({length: 256}, (_, i) => {
    const place = i / 255 * (parts.length - 1), k = Math.min(parts.length - 2, Math.floor(place)), part = place - k;
    return parts[k].map((value, c) => Math.round(value + part * (parts[k + 1][c] - value)));
  });
}
const FIELD_SHADES = shadeTable(VIRIDIS), ERROR_SHADES = shadeTable(DIVERGING);

// A picture of values [rows across, columns up]: time or x to the right, x or y upwards; with its scale below.
function drawMap(canvas, values, across, up, [low, high], shades, {ends, labels, mark}) {
  const {brush, width, height} = prepare(canvas);
  const left = 34, right = 4, top = 4, bottom = 50;
  const [inner, tall] = [width - left - right, height - top - bottom];
  brush.fillStyle = colour("soft");
  brush.textBaseline = "middle";
  brush.textAlign = "center";
  if (!values) {
    brush.strokeStyle = colour("edge");
    brush.strokeRect(left + 0.5, top + 0.5, inner - 1, tall - 1);
    brush.fillText(shown.solving ? "computing …" : model.solver ? "not computed yet" : "no solver", left + inner / 2, top + tall / 2);
    return;
  }
  const picture = new ImageData(across, up);
  for (let i = 0; i < across; i++) for (let j = 0; j < up; j++) {
    const value = values[i * up + j], at = 4 * ((up - 1 - j) * across + i);
    if (!Number.isFinite(value)) continue;
    const shade = shades[Math.max(0, Math.min(255, Math.round(255 * (value - low) / (high - low))))];
    picture.data.set([...shade, 255], at);
  }
  const small = new OffscreenCanvas(across, up);
  small.getContext("2d").putImageData(picture, 0, 0);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, left, top, inner, tall);
  if (mark !== undefined) {
    brush.strokeStyle = "#ffffff";
    brush.lineWidth = 1.5;
    brush.setLineDash([4, 3]);
    brush.beginPath();
    brush.moveTo(left + mark * inner, top);
    brush.lineTo(left + mark * inner, top + tall);
    brush.stroke();
    brush.setLineDash([]);
  }
  const [[x0, x1], [y0, y1]] = ends;
  brush.textAlign = "right";
  brush.fillText(short(y1, y1 - y0), left - 5, top + 7);
  brush.fillText(labels[1], left - 5, top + tall / 2);
  brush.fillText(short(y0, y1 - y0), left - 5, top + tall - 7);
  brush.fillText(short(x1, x1 - x0), width - right, top + tall + 11);
  brush.textAlign = "left";
  brush.fillText(short(x0, x1 - x0), left, top + tall + 11);
  brush.textAlign = "center";
  brush.fillText(labels[0], left + inner / 2, top + tall + 11);
  shades.forEach(([r, g, b], i) => {
    brush.fillStyle = `rgb(${r} ${g} ${b})`;
    brush.fillRect(left + inner * (0.25 + 0.5 * i / 256), height - 20, inner / 512 + 1, 9);
  });
  brush.fillStyle = colour("soft");
  brush.textAlign = "right";
  brush.fillText(short(low, high - low), left + inner * 0.25 - 5, height - 15);
  brush.textAlign = "left";
  brush.fillText(short(high, high - low), left + inner * 0.75 + 6, height - 15);
}

// One time of a field over x and y; of a box the slice that is chosen.
function plane(values, [, across, up, ...rest], index) {
  const depth = model.ndim === 3 ? rest[0] : 1, count = across * up * depth;
  const now = values.subarray(index * count, (index + 1) * count);
  const slice = Number(find("slice").value);
  return depth === 1 ? now : Float32Array.from({length: across * up}, (_, i) => now[i * depth + slice]);
}

function drawMaps({own, other, difference, range, reach}, index) {
  const {shape: sizes, t} = shown.surrogate;
  const line = model.ndim === 1;
  const part = values => values && (line ? values : plane(values, sizes, index));
  const [across, up] = line ? sizes : sizes.slice(1, 3);
  const last = t[t.length - 1];
  const layout = line
    ? {ends: [[0, last], model.domain[0]], labels: ["t", "x"], mark: (index + 0.5) / sizes[0]}
    : {ends: model.domain, labels: ["x", "y"]};
  const most = Math.max(reach, 1e-9);
  drawMap(find("map-surrogate"), part(own), across, up, range, FIELD_SHADES, layout);
  drawMap(find("map-solver"), part(other), across, up, range, FIELD_SHADES, layout);
  drawMap(find("map-error"), part(difference), across, up, [-most, most], ERROR_SHADES, {...layout, mark: undefined});
}

// What was shown belongs to another model, and must not stay if this one cannot answer.
function clear() {
  shown = {};
  for (const canvas of document.querySelectorAll("canvas")) prepare(canvas);
  for (const id of ["surrogate-ms", "solver-ms", "nrmse", "nrmse-now"]) find(id).textContent = "–";
  find("reference").textContent = "";
  for (const id of ["warnings", "error", "time-value", "slice-value"]) find(id).replaceChildren();
  find("solve").disabled = true;
}

// What the surrogate is judged by, and how far that and the solver on the same points are off themselves.
function spellReference(solver, which) {
  const {mean, raw, solver: coarse, reference: own} = solver.nrmse;
  const floored = raw[which] > 1.01 * mean[which] ? ` Without the floor for faded fields: ${per(raw[which])}.` : "";
  if (coarse.length === 0) return `Judged by ${solver.reference}, whose own error is not known.${floored}`;
  const error = own[which] === 0 ? "" : `, itself off by about ${per(own[which])} at most`;
  return `Judged by ${solver.reference}${error}. The solver on the same points: ${per(coarse[which])}.${floored}`;
}

function draw() {
  const {surrogate, solver} = shown;
  if (!surrogate) return;
  const index = Number(find("time").value), which = model.channels.indexOf(channel());
  const unit = model.units.t ? ` ${model.units.t}` : "";
  find("time-value").textContent = `t = ${short(surrogate.t[index])}${unit}`;
  find("time").setAttribute("aria-valuetext", find("time-value").textContent);
  find("surrogate-ms").textContent = duration(surrogate.ms);
  find("solver-ms").textContent = solver ? duration(solver.ms) : shown.solving ? "…" : "–";
  find("solve").disabled = Boolean(solver) || shown.solving;
  find("nrmse").textContent = per(solver?.nrmse.mean[which]);
  find("reference").textContent = solver ? spellReference(solver, which) : "";
  find("nrmse-now").textContent = per(solver?.nrmse.by_time[index][which]);
  find("warnings").replaceChildren(...[...surrogate.warnings, ...(solver?.warnings ?? [])].map(text => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  if (model.ndim === 3) {
    find("slice-value").textContent = `z = ${short(surrogate.x[2][find("slice").value])}`;
    find("slice").setAttribute("aria-valuetext", find("slice-value").textContent);
  }
  if (model.ndim === 1) drawLines(fields(which), index);
  if (!pen) drawMaps(fields(which), index);
}

// ---------------------------------------------------------------- the pen

function touch(event) {
  const box = find("lines").getBoundingClientRect();
  const {left, right, top, bottom} = MARGIN;
  const across = (event.clientX - box.left - left) / (plot.width - left - right);
  const up = (plot.height - bottom - (event.clientY - box.top)) / (plot.height - top - bottom);
  const cell = Math.max(0, Math.min(DRAWN - 1, Math.floor(across * DRAWN)));
  const value = plot.low + Math.max(0, Math.min(1, up)) * (plot.high - plot.low);
  const from = pen.cell ?? cell, step = Math.sign(cell - from) || 1;
  for (let k = from; k !== cell + step; k += step) {
    const part = cell === from ? 1 : (k - from) / (cell - from);
    pen.values[k] = (pen.value ?? value) * (1 - part) + value * part;
  }
  [pen.cell, pen.value] = [cell, value];
}

function startDrawing(event) {
  if (!shown.surrogate || event.button > 0) return;
  const {x: [x]} = shown.surrogate;
  const now = field(shown.surrogate, model.channels.indexOf(channel())).subarray(0, x.length);
  pen = {values: Array.from({length: DRAWN}, (_, k) => now[Math.floor((k + 0.5) * x.length / DRAWN)]), bounds: [plot.low, plot.high]};
  find("lines").setPointerCapture(event.pointerId);
  keepDrawing(event);
}

function keepDrawing(event) {
  if (!pen) return;
  touch(event);
  draw();
}

function endDrawing() {
  if (!pen) return;
  const {name} = channel();
  shape.drawn[name] = pen.values.map(value => Number(value.toPrecision(6)));
  shape.modes[name] = new Array(MODES).fill(0); // what was there is part of the line now
  pen = undefined;
  showShape();
  ask();
}

// ---------------------------------------------------------------- downloads

function download(blob, suffix) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `vcnef_${model.problem}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function save(format) {
  if (!shown.question) return;
  try {
    download(await (await send("/api/export", {...shown.question, format})).blob(), format);
  } catch (error) {
    find("error").textContent = error.message;
  }
}

// All canvases on one, as on the screen.
function picture() {
  const origin = find("view").getBoundingClientRect(), scale = window.devicePixelRatio || 1, head = 44;
  const parts = [...document.querySelectorAll("canvas")].filter(canvas => canvas.offsetParent);
  const first = Math.min(...parts.map(each => each.getBoundingClientRect().top)) - 24;
  const sheet = document.createElement("canvas");
  sheet.width = origin.width * scale;
  sheet.height = (origin.bottom - first + head) * scale;
  const brush = sheet.getContext("2d");
  brush.scale(scale, scale);
  brush.fillStyle = colour("card");
  brush.fillRect(0, 0, origin.width, sheet.height / scale);
  brush.fillStyle = colour("text");
  brush.font = "14px system-ui, sans-serif";
  const values = Object.entries(shown.question.params).map(([name, value]) => `${name} = ${value}`);
  brush.fillText([model.name, channel().name, ...values, find("time-value").textContent,
    ...(model.ndim === 3 ? [find("slice-value").textContent] : [])].join(", "), 16, 22);
  const solved = shown.solver ? `, solver ${duration(shown.solver.ms)}, nRMSE ${find("nrmse").textContent}` : "";
  brush.fillText(`surrogate ${duration(shown.surrogate.ms)}${solved}`, 16, 42);
  for (const each of parts) {
    const box = each.getBoundingClientRect(), caption = each.parentElement.querySelector("figcaption");
    brush.drawImage(each, box.left - origin.left, box.top - first + head, box.width, box.height);
    if (caption) brush.fillText(caption.textContent, box.left - origin.left, box.top - first + head - 6);
  }
  return sheet;
}

// ---------------------------------------------------------------- begin

function listen() {
  find("model").addEventListener("change", event => choose(event.target.value));
  find("channel").addEventListener("change", () => { showShape(); draw(); });
  find("preset").addEventListener("change", event => {
    Object.assign(shape, {preset: event.target.value, drawn: {}});
    showShape();
    ask();
  });
  find("seed").addEventListener("input", ({target: {value}}) => {
    if (value === "") return; // something else is about to be typed
    shape.seed = Math.max(0, Math.floor(Number(value)));
    ask();
  });
  find("seed").addEventListener("change", showShape);
  find("reroll").addEventListener("click", () => { shape.seed = (shape.seed + 1) % 2 ** 31; showShape(); ask(); });
  find("reset").addEventListener("click", () => { Object.assign(shape, {modes: {}, drawn: {}}); showShape(); ask(); });
  find("points").addEventListener("input", () => { showShape(); ask(); });
  for (const id of ["times", "last"]) find(id).addEventListener("change", ask);
  for (const id of ["time", "slice"]) find(id).addEventListener("input", draw);
  find("play").addEventListener("click", play);
  find("solve").addEventListener("click", solveNow);
  for (const format of ["npz", "csv"]) find(`save-${format}`).addEventListener("click", () => save(format));
  find("save-png").addEventListener("click", () => shown.surrogate && picture().toBlob(blob => download(blob, "png")));
  find("lines").addEventListener("pointerdown", startDrawing);
  find("lines").addEventListener("pointermove", keepDrawing);
  for (const kind of ["pointerup", "pointercancel"]) find("lines").addEventListener(kind, endDrawing);
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(find("view"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

async function begin() {
  try {
    models = await (await fetch("/api/models")).json();
  } catch {
    find("error").textContent = "The explorer's server does not answer; start it again with `vcnef serve`.";
    return;
  }
  models.forEach(({name, problem}, number) => option(find("model"), number, `${name} (${problem})`));
  listen();
  choose(0);
}

begin();
