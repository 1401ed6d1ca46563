// Reads a response slowly with one of Node's HTTP libraries: stack.mjs LIBRARY URL BODY PAUSE_MS
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const [library, url, body, pauseMs] = process.argv.slice(2);
const asked = { method: "POST", headers: { "content-type": "application/json" } };

const opened = () =>
  library === "fetch"
    ? fetch(url, { ...asked, body }).then((response) => response.body)
    : new Promise((resolve, reject) => request(url, asked).on("response", resolve).on("error", reject).end(body));

let bytes = 0;
let error = null;
try {
  for await (const piece of await opened()) {
    if (bytes === 0) await sleep(Number(pauseMs));
    bytes += piece.byteLength;
  }
} catch (problem) {
  error = problem.cause?.code ?? problem.code ?? problem.name;
}
console.log(JSON.stringify({ bytes, error }));
