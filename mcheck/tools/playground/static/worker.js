// mcheck in a worker: one question at a time, in the order in which they come.
import { loadPyodide } from "./pyodide.mjs";

const HOME = "/mcheck";

async function unpack(python, name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  python.unpackArchive(new Uint8Array(await answer.arrayBuffer()), "zip", { extractDir: HOME });
}

async function start() {
  const python = await loadPyodide({ indexURL: new URL(".", import.meta.url).href });
  await unpack(python, "mcheck.zip");
  python.runPython(`import sys; sys.path.insert(0, "${HOME}")`);
  const answers = python.pyimport("mcheck.tools.playground.answers");
  postMessage({ kind: "ready", ...JSON.parse(answers.models()) });
  return { python, answers, loaded: new Set() };
}

const started = start();
started.catch((error) => postMessage({ kind: "failed", why: String(error) }));

async function once(state, name, load) {
  if (state.loaded.has(name)) return;
  await load();
  state.loaded.add(name);
}

async function ask(state, question) {
  const { python, answers } = state;
  const { text, model, own } = question;
  if (question.kind === "model") return JSON.stringify({ text: answers.model_text(model) });
  if (question.kind === "explain") return answers.explain(question.code);
  if (question.kind === "pictures") {
    if (question.forbidden) await once(state, "networkx", () => unpack(python, "networkx.zip"));
    return answers.pictures(text, model, question.forbidden, own);
  }
  if (question.mode === "check") return answers.check(text, model, own);
  if (question.engine === "z3") {
    await once(state, "z3", () => python.loadPackage(new URL(question.z3, import.meta.url).href));
  }
  return answers.run(text, model, question.engine, own);
}

onmessage = async ({ data: question }) => {
  try {
    const answer = JSON.parse(await ask(await started, question));
    postMessage({ kind: question.kind, number: question.number, ...answer });
  } catch (error) {
    postMessage({ kind: "failed", number: question.number, why: String(error) });
  }
};
