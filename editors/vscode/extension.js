// Starts `mcheck lsp` and hands it litmus tests, models, modules, and sources of kernels.
"use strict";

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function server() {
  const settings = workspace.getConfiguration("mcheck");
  const [command, ...args] = settings.get("command");
  args.push("lsp", "--profile", settings.get("profile"), "--timeout", String(settings.get("timeout")));
  if (settings.get("model")) args.push("--model", settings.get("model"));
  if (settings.get("memory")) args.push("--memory", settings.get("memory"));
  const folder = workspace.workspaceFolders?.find((one) => one.uri.scheme === "file");
  return { command, args, options: folder ? { cwd: folder.uri.fsPath } : undefined };
}

async function start() {
  client = new LanguageClient("mcheck", "mcheck", server(), {
    documentSelector: [
      { language: "litmus" },
      { language: "cat" },
      { language: "ptx" },
      { scheme: "file", pattern: "**/*.{cu,py}" },
    ],
  });
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `mcheck does not start: ${error.message}. Is it installed with its extra, pip install '.[lsp]' in its checkout, ` +
        "and does the setting mcheck.command name it?",
    );
  }
}

async function restart() {
  await client?.dispose();
  await start();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    commands.registerCommand("mcheck.restart", restart),
    workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("mcheck") && restart()),
  );
  await start();
};

exports.deactivate = () => client?.dispose();
