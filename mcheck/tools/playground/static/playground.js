// The page: a text, a question, an answer. The work is done in a worker, which Stop ends.
const $ = (id) => document.getElementById(id);
const text = $("text");
const PAUSE = 600; // milliseconds without a key after which the program is run
let worker, facts = { examples: [], z3: "" }, number = 0, asked = 0, sent = 0, busy = false, ready = false, marked = new Set();
let shipped = "", pause = 0; // the text of the chosen model as shipped; the timer of a run that typing has asked for

// --- the worker ---------------------------------------------------------------------------------------------------

function launch() {
  ready = false;
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => told(data);
  worker.onerror = (event) => told({ kind: "failed", why: event.message || "the worker could not be started" });
}

function ask(question, words) {
  const { options } = $("engine");
  if (question.kind === "ask") clear();
  else $("pictures").textContent = "";
  asked = sent = ++number;
  busy = true;
  $("stop").disabled = false;
  say(ready ? words : "Python starts …");
  const engine = options[$("engine").selectedIndex].value;
  worker.postMessage({ ...question, number, text: text.value, model: $("model").value, own: own(), engine, z3: facts.z3 });
}

function run() {
  clearTimeout(pause);
  if (busy) stop();
  since = performance.now();
  ask({ kind: "ask", mode: $("mode").value }, "at work …");
}

// What is typed is run after a pause, and as soon as the worker is done with what was typed before.
function runSoon() {
  clearTimeout(pause);
  if ($("typing").checked) pause = setTimeout(() => (busy || !ready ? runSoon() : run()), PAUSE);
}

function told(answer) {
  if (answer.kind === "ready") {
    ready = true;
    fill($("model"), answer.models.map((name) => [name, name + (name === answer.default ? " (default)" : "")]));
    if (wanted.m) $("model").value = wanted.m;
    if (busy) say("at work …");
    else say("ready");
    showModel();
    return;
  }
  if (answer.kind === "model") return showShipped(answer.text);
  if (answer.kind === "explain") return explain(answer);
  if (answer.number !== undefined && answer.number !== sent) return;
  busy = false;
  $("stop").disabled = true;
  if (answer.number !== undefined && answer.number !== asked) return; // the question has changed since
  if (answer.kind === "failed") say(`It failed: ${answer.why.split("\n").filter(Boolean).pop()}`, "error");
  else if (answer.kind === "ask") show(answer);
  else draw(answer);
}

function stop() {
  worker.terminate();
  busy = false;
  $("stop").disabled = true;
  launch();
  say("stopped");
}

// --- the answer ---------------------------------------------------------------------------------------------------

function say(words, verdict = "") {
  const state = $("state");
  state.textContent = "";
  if (verdict) {
    const chip = document.createElement("span");
    chip.className = `verdict ${verdict}`;
    chip.textContent = verdict;
    state.append(chip, " ");
  }
  state.append(words);
}

// The answer goes with what was asked: nothing of it stays where something else is asked, or is to be.
function clear() {
  asked = 0;
  $("report").textContent = "";
  $("pictures").textContent = "";
  $("draw").hidden = $("code").hidden = true;
  for (const id of ["report", "pictures"]) $(id).classList.remove("stale");
  mark([]);
}

// What was typed over can still be read, but no longer passes for an answer.
function outdate() {
  const had = busy || $("report").textContent !== "" || $("pictures").firstChild;
  asked = 0;
  mark([]);
  $("draw").hidden = true;
  if (!had) return;
  for (const id of ["report", "pictures"]) $(id).classList.add("stale");
  say("changed since: run it again");
}

// Codes in the report are buttons, which show their entries of the catalogue.
function report(words) {
  const room = $("report");
  room.textContent = "";
  words.split(/\b((?:RACE|UB|DEAD)\d{3})\b/).forEach((part, k) => {
    if (k % 2 === 0) return room.append(part);
    const code = document.createElement("button");
    code.type = "button";
    code.className = "code";
    code.textContent = part;
    code.addEventListener("click", () => worker.postMessage({ kind: "explain", code: part }));
    room.append(code);
  });
}

function explain({ title, parts, programs }) {
  const [heading, , body] = $("code").children;
  heading.textContent = title;
  body.textContent = "";
  const add = (kind, words) => {
    const element = document.createElement(kind);
    element.textContent = words;
    body.append(element);
    return element;
  };
  for (const [name, words] of parts) {
    if (name) add("h3", name);
    words.trim().split("\n\n").forEach((part) => add("p", part));
  }
  for (const [name, program] of programs) {
    add("h3", name);
    add("pre", program.trim());
    const open = add("button", "Open it in the editor");
    open.type = "button";
    open.hidden = !/^PTX/.test(program.trim());
    open.addEventListener("click", () => {
      $("mode").value = "check";
      suit();
      set(program.trim() + "\n");
      run();
    });
  }
  $("code").hidden = false;
  $("code").scrollIntoView({ behavior: "smooth", block: "nearest" });
}

function show(answer) {
  const seconds = ((performance.now() - since) / 1000).toFixed(2);
  say(`${answer.codes.length ? answer.codes.join(", ") + "; " : ""}${answer.status}, ${seconds} s`, answer.verdict);
  report(answer.report);
  $("draw").hidden = !answer.pictures;
  mark(answer.places.map((place) => place.line));
}

function draw(answer) {
  const { pictures } = answer;
  say(answer.problem || (pictures.length ? `${pictures.length} picture${pictures.length > 1 ? "s" : ""} below` : "there is none"));
  const room = $("pictures");
  room.textContent = "";
  pictures.forEach(({ state, axiom, svg }, k) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    const picture = document.createElement("div");
    caption.textContent = `${k + 1}. ${state}${axiom ? ` is forbidden by ${axiom}` : ""}`;
    picture.attachShadow({ mode: "open" }).innerHTML = svg; // its styles and identifiers are its own
    figure.append(caption, picture);
    room.append(figure);
  });
  room.scrollIntoView({ behavior: "smooth", block: "nearest" });
}

// --- the editor ---------------------------------------------------------------------------------------------------

function mark(lines) {
  marked = new Set(lines);
  count();
}

function count() {
  const numbers = $("numbers");
  numbers.textContent = "";
  text.value.split("\n").forEach((_, k) => {
    const line = document.createElement("span");
    line.textContent = `${k + 1}\n`;
    if (marked.has(k + 1)) line.className = "marked";
    numbers.append(line);
  });
  follow();
}

function follow() {
  $("numbers").style.maxHeight = `${text.offsetHeight}px`;
  $("numbers").scrollTop = text.scrollTop;
}

function set(value) {
  text.value = value;
  text.scrollTop = 0;
  clear();
  say(ready ? "ready" : "Python starts …");
}

// --- a model of one's own -------------------------------------------------------------------------------------------

// Its text, if it is not the shipped one.
function own() {
  if (kept) return kept;
  const words = $("cat").value;
  return shipped !== "" && words !== shipped ? words : "";
}

function showModel() {
  if (ready && $("own").open) worker.postMessage({ kind: "model", model: $("model").value });
}

function showShipped(words) {
  const changed = own();
  shipped = words;
  $("cat").value = changed || words;
  kept = "";
  $("shipped").disabled = !own();
}

function edited() {
  $("shipped").disabled = !own();
  outdate();
  runSoon();
  keep();
}

// --- what is kept in this browser -----------------------------------------------------------------------------------

let kept = ""; // a model of one's own that was kept or came with a link, until the shipped one is there to compare with

function keep() {
  try {
    const state = { text: text.value, mode: $("mode").value, model: $("model").value, own: own(), typing: $("typing").checked };
    localStorage.setItem("mcheck", JSON.stringify(state));
  } catch { /* a browser that keeps nothing */ }
}

function recall() {
  try {
    return JSON.parse(localStorage.getItem("mcheck") ?? "null");
  } catch {
    return null;
  }
}

function useModel(words) {
  if (!words) return;
  kept = words;
  $("own").open = true;
  showModel();
}

function fill(select, rows) {
  while (select.options.length > 1) select.remove(1);
  rows.forEach(([value, label]) => select.add(new Option(label, value)));
}

// --- links: the program, deflated, behind the # -------------------------------------------------------------------

async function through(stream, data) {
  return new Uint8Array(await new Response(new Blob([data]).stream().pipeThrough(stream)).arrayBuffer());
}

async function packed(words) {
  const data = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(words));
  return btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(words) {
  const data = Uint8Array.from(atob(words.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), data));
}

async function link() {
  const parts = [`t=${await packed(text.value)}`];
  if ($("model").value) parts.push(`m=${encodeURIComponent($("model").value)}`);
  if ($("mode").value !== "run") parts.push(`q=${$("mode").value}`);
  if (own()) parts.push(`c=${await packed(own())}`);
  location.hash = parts.join("&");
  try {
    await navigator.clipboard.writeText(location.href);
    say("the link is copied; it holds the program");
  } catch {
    say("the link is this page's address now; it holds the program");
  }
}

// Findings are the business of the engine that suits the program.
function suit() {
  $("engines").hidden = $("mode").value === "check";
}

let wanted = {};

async function open() {
  wanted = Object.fromEntries(location.hash.slice(1).split("&").filter(Boolean).map((part) => {
    const at = part.indexOf("=");
    return [part.slice(0, at), decodeURIComponent(part.slice(at + 1))];
  }));
  const before = [$("mode").value, $("model").value];
  if (wanted.q === "check") $("mode").value = "check";
  if (ready && wanted.m) $("model").value = wanted.m;
  suit();
  if (String(before) !== String([$("mode").value, $("model").value])) outdate();
  if (!wanted.t) return false;
  try {
    const value = await unpacked(wanted.t);
    if (value !== text.value) set(value);
    if (wanted.c) useModel(await unpacked(wanted.c));
  } catch {
    say("the link's program cannot be read", "error");
  }
  return true;
}

// --- start --------------------------------------------------------------------------------------------------------

let since = 0;

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
$("stop").addEventListener("click", () => {
  clearTimeout(pause);
  stop();
});
$("close").addEventListener("click", () => { $("code").hidden = true; });
$("own").addEventListener("toggle", showModel);
$("cat").addEventListener("input", edited);
$("shipped").addEventListener("click", () => {
  $("cat").value = shipped;
  edited();
});
$("link").addEventListener("click", link);
$("allowed").addEventListener("click", () => ask({ kind: "pictures", forbidden: false }, "drawing …"));
$("forbidden").addEventListener("click", () => ask({ kind: "pictures", forbidden: true }, "looking for reasons …"));
$("mode").addEventListener("change", suit);
for (const id of ["mode", "model", "engine"]) {
  $(id).addEventListener("change", () => {
    outdate();
    runSoon();
    keep();
  });
}
$("model").addEventListener("change", showModel);
$("typing").addEventListener("change", keep);
$("example").addEventListener("change", ({ target }) => {
  if (!target.value) return;
  const { text: program, mode } = facts.examples[target.value];
  $("mode").value = mode;
  suit();
  set(program);
  runSoon();
  keep();
});
text.addEventListener("input", () => {
  outdate();
  runSoon();
  keep();
});
text.addEventListener("scroll", follow);
new ResizeObserver(follow).observe(text);
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
});
addEventListener("hashchange", open);

launch();
say("Python starts …");
const given = await open();
facts = await (await fetch("playground.json")).json();
$("version").textContent = facts.version;
for (const option of $("engine").querySelectorAll('[value="z3"]')) option.hidden = option.disabled = !facts.z3;
fill($("example"), facts.examples.map(({ name }, k) => [String(k), name]));
if (facts.home) $("home").href = facts.home;
if (!given) {
  const before = recall();
  if (before) {
    $("mode").value = before.mode;
    $("typing").checked = before.typing;
    wanted.m ??= before.model;
    if (ready) $("model").value = wanted.m;
    suit();
    useModel(before.own);
  }
  set(before?.text ?? facts.examples[0]?.text ?? "");
}
count();
$("run").disabled = false;
