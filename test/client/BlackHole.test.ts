/** A network that silently drops packets, under real sockets: its effects on each component, and their times. */
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { hasNamespaces, played } from "./Namespaces.ts";

const program = (name: string) => fileURLToPath(new URL(`../fixtures/hole/${name}.ts`, import.meta.url));

/** The lines that the program printed, by topic. */
const toldBy = async (name: string) => {
  const lines = await played([program(name)], 110_000);
  return new Map(
    lines.map((line) => {
      const { what, ms, ...told } = line as { what: string; ms?: number }; // the program's own lines
      return [what, { ms, told }] as const;
    }),
  );
};

describe.skipIf(!hasNamespaces())("a black hole", { timeout: 120_000 }, () => {
  it("is noticed by every connection and probe, reports not_sent only if nothing was sent, and leaves nothing behind when it ends", async () => {
    const told = await toldBy("Near");
    const felt = (what: string, expected: object, withinMs: number) => {
      const found = told.get(what);
      assert.deepStrictEqual(found?.told, expected, what);
      assert.isBelow(found?.ms ?? 0, withinMs, what);
    };
    assert.deepStrictEqual(told.get("whole")?.told, { status: 200 });

    // A socket without our own keep-alive timer: TCP itself detects the loss and needs no probe.
    const dead = { kind: "transport", code: "ETIMEDOUT", retryable: true };
    felt("body", { ...dead, operation: "body", delivery: "accepted" }, 16_000);
    felt("head", { ...dead, operation: "head", delivery: "ambiguous" }, 16_000);
    felt("body from a lost proxy", { ...dead, operation: "body", delivery: "accepted" }, 16_000);

    // All others use probes, which end within 16 s if they begin after 10 s of silence.
    const probed = (code: string) => ({ _tag: "failed", reason: "network", code });
    felt("probe", probed("CONNECT_STALLED"), 6_000);
    felt("probe of TLS", probed("CONNECT_STALLED"), 6_000);
    felt("probe through a proxy that lives", probed("PROXY_STALLED"), 6_000);
    felt("probe through a proxy that is lost", probed("PROXY_STALLED"), 6_000);

    // No route, and no host that answers.
    for (const [what, code] of [
      ["no host", "EHOSTUNREACH"],
      ["no route", "ENETUNREACH"],
    ] as const) {
      const unconnected = { kind: "transport", code, operation: "connect", delivery: "not_sent", retryable: true };
      assert.deepStrictEqual(told.get(what)?.told, unconnected);
      felt(`probe of ${what}`, probed(code), 6_000);
    }
    assert.deepStrictEqual(told.get("healed")?.told, { status: 200, secure: 200 });
  });

  it("is noticed by whole runs within 16 s of their last byte, and each resumes by itself afterwards: one more request, nothing twice", async () => {
    const told = await toldBy("Runs");
    assert.deepStrictEqual([...told.keys()].sort(), ["body", "head", "tunnelled", "written"]);
    for (const [what, { ms, told: fate }] of told) {
      assert.isBelow(ms ?? Number.NaN, 16_000, what);
      const { backMs, completed, requests, rules, text } = fate as {
        readonly [field: string]: unknown;
        readonly backMs: number;
      }; // the program's own lines
      const whole = { completed, requests, rules, text };
      assert.deepStrictEqual(whole, { completed: true, requests: 2, rules: ["nothing_shown"], text: 1 }, what);
      // 1.5 times the interval of probes in the first minute, and half a second.
      assert.isBelow(backMs, 2_000, what);
    }
  });
});
