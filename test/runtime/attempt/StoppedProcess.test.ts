/** A process that is stopped for a while: the stream lives on, nothing is cut and nothing is paid twice. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";

const program = fileURLToPath(new URL("../../fixtures/Stopped.ts", import.meta.url));

/** Beats a second. The beat is a process of its own, which nothing here can stop. */
const beats = 10;
const metronome = () =>
  spawn(process.execPath, ["-e", `setInterval(() => console.log("beat"), ${1_000 / beats})`], {
    stdio: ["ignore", "pipe", "inherit"],
  });

/** A provider that holds every request open. */
const provider = async () => {
  const open = new Set<ServerResponse>();
  let requests = 0;
  const first = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    requests += 1;
    open.add(response);
    response.writeHead(200, { "content-type": "text/plain" });
    first.resolve();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    first: first.promise,
    requests: () => requests,
    say: () => {
      for (const response of open) response.write("piece ");
    },
    finish: () => {
      for (const response of open) response.end("end");
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

describe.skipIf(process.platform === "win32")("a process that was stopped for four seconds", () => {
  for (const limit of [1_000, 3_000]) {
    it(`goes on with its living stream and sends no second request: clocks of ${limit} ms`, async () => {
      const living = await provider();
      const child = spawn(process.execPath, [program, living.url, String(limit)], {
        stdio: ["ignore", "pipe", "inherit"],
        timeout: 25_000,
        killSignal: "SIGKILL",
      });
      let out = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        out += text;
      });
      const gone = once(child, "close");
      await living.first;
      const clock = metronome();
      let beat = 0;
      createInterface({ input: clock.stdout }).on("line", () => {
        beat += 1;
        living.say();
        if (beat === 7) child.kill("SIGSTOP");
        if (beat === 7 + 4 * beats) child.kill("SIGCONT");
        if (beat === 7 + 4 * beats + 15) living.finish();
      });
      await gone;
      clock.kill();
      living.close();
      assert.strictEqual(living.requests(), 1, out);
      const said: unknown = JSON.parse(out.trim().split("\n").at(-1) ?? "null");
      assert.deepInclude(said, { end: true, attempts: 1 });
    });
  }
});
