/**
 * Other runtimes, where they are on the PATH: a body that is cut is recovered through `./fetch` and through `./client`.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { assert, describe, it } from "@effect/vitest";

const execute = promisify(execFile);

const runtimes = {
  node: [],
  deno: ["run", "--allow-all", "--node-modules-dir=manual", "--no-check"],
  bun: [],
} as const;

const found = (name: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

/** Cuts the first body of every path behind its first event. */
const provider = async () => {
  const requests = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("/")[1] ?? "";
    const count = (requests.get(path) ?? 0) + 1;
    requests.set(path, count);
    request.resume();
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (count > 1)
        response.end(`${chunk({ role: "assistant", content: "GOOD" })}${chunk({}, "stop")}data: [DONE]\n\n`);
      else response.write(chunk({ role: "assistant", content: "" }), () => response.socket?.destroy());
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return {
    requests,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

describe("a cut body in another runtime", () => {
  for (const [name, options] of Object.entries(runtimes)) {
    const path = found(name);
    it.skipIf(path === undefined)(`is recovered: ${name}`, async () => {
      await using server = await provider();
      const program = join(import.meta.dirname, "RuntimePlay.ts");
      const { stdout } = await execute(path ?? name, [...options, program, server.url], { timeout: 25_000 });
      assert.deepStrictEqual(JSON.parse(stdout), { fetched: true, client: true });
      assert.deepStrictEqual([...server.requests.values()], [2, 2]);
    });
  }
});
