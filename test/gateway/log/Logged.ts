/**
 * Starts gateways whose log is kept.
 */
import { Context, Effect, Layer, Logger, References } from "effect";
import { Gateway } from "../../../src/gateway/Gateway.ts";
import { type GatewayProgram, layer } from "../../../src/gateway/GatewayLayers.ts";
import type { AccessRecord } from "../../../src/gateway/log/AccessRecord.ts";
import { lineOf } from "../../../src/gateway/log/LogLine.ts";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { upstreamsAt } from "../GatewayCases.ts";

/** A line, as JSON says it. */
export type Line = AccessRecord & { readonly level: string; readonly message: string };

/** A gateway whose log is kept: each line as text, and what JSON says of it. */
export const logging = (upstream: string, program: GatewayProgram = {}, level: "Debug" | "Info" = "Debug") =>
  Effect.gen(function* () {
    const lines: Array<Line> = [];
    const texts: Array<string> = [];
    let wake = () => undefined as void;
    const logger = Logger.make(({ cause, date, fiber, logLevel, message }) => {
      const event = { cause, date, logLevel, message, annotations: fiber.getRef(References.CurrentLogAnnotations) };
      texts.push(lineOf("text", event));
      lines.push(JSON.parse(lineOf("json", event)));
      wake();
    });
    const upstreams = upstreamsAt(upstream);
    const built = layer({ db: "memory", port: 0, upstreams, limits: { drainMs: 50 }, ...program }, RecoveryPage.layer);
    const log = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, level));
    const services = yield* Layer.build(Layer.provide(built, log));
    const { url } = Context.get(services, Gateway);
    const access = () => lines.filter(({ message }) => message === "request");
    /** The access lines, as soon as there are so many: a client has its response before its line is written. */
    const accessed = (count: number) =>
      Effect.callback<ReadonlyArray<Line>>((resume) => {
        const look = () => {
          if (access().length >= count) resume(Effect.succeed(access()));
        };
        wake = look;
        look();
      });
    return { accessed, lines, services, texts, url };
  });
