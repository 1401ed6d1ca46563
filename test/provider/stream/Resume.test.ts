import { assert, describe, it } from "@effect/vitest";
import { none, ping } from "../../../src/domain/Observation.ts";
import type { Part } from "../../../src/provider/Protocols.ts";
import * as Resume from "../../../src/provider/stream/Resume.ts";
import { seeded } from "../../Seeded.ts";

const part = (json: object | undefined, id?: string, name = "message"): Part<"sse"> => ({
  protocol: "sse",
  event: { event: name, data: JSON.stringify(json) ?? "", bytes: 1, ...(id === undefined ? {} : { id }) },
  json,
  content: [],
  observation: name === "comment" ? ping : none,
});
const event = (sequence: number | undefined, response?: object) =>
  part({
    type: "response.output_text.delta",
    ...(sequence === undefined ? {} : { sequence_number: sequence }),
    ...(response === undefined ? {} : { response }),
  });
const created = (background: unknown) => event(0, { id: "resp_1", background });

const said = (verification: Resume.Verification<"sse">): unknown => {
  if (verification.type === "pass") return verification.part.cursor ?? "no cursor";
  return verification.type === "repeated" ? "repeated" : [verification.failure.kind, verification.failure.code];
};
const through = (verifier: Resume.Verifier<"sse">, parts: ReadonlyArray<Part<"sse">>) =>
  parts.map((it) => said(verifier.take(it)));

const comment = part(undefined, undefined, "comment");

describe("Resume of a Responses stream", () => {
  const at = (sequence: number) => ({ response: "resp_1", sequence });

  it("gives cursors once the response is known to run in the background, and never else", () => {
    assert.deepStrictEqual(through(Resume.responses(), [created(true), event(1), comment, event(2)]), [
      "responses:0:resp_1",
      "responses:1:resp_1",
      "no cursor",
      "responses:2:resp_1",
    ]);
    for (const background of [false, undefined, "true"])
      assert.deepStrictEqual(through(Resume.responses(), [created(background), event(1)]), ["no cursor", "no cursor"]);
    assert.deepStrictEqual(through(Resume.responses(), [event(0), event(1)]), ["no cursor", "no cursor"]);
  });

  it("never lets a cursor go back, and judges nothing before a resume", () => {
    assert.deepStrictEqual(through(Resume.responses(), [created(true), event(5), event(2), event(undefined)]), [
      "responses:0:resp_1",
      "responses:5:resp_1",
      "responses:5:resp_1",
      "no cursor",
    ]);
  });

  it("drops what comes again and goes on behind it", () => {
    assert.deepStrictEqual(through(Resume.responses(at(2)), [created(true), event(1), event(2), event(3), event(3)]), [
      "repeated",
      "repeated",
      "repeated",
      "responses:3:resp_1",
      "repeated",
    ]);
  });

  it("a gap right behind the cursor refuses it, a later one is damage", () => {
    assert.deepStrictEqual(through(Resume.responses(at(2)), [comment, event(4)]), [
      "no cursor",
      ["rejected", Resume.codes.gap],
    ]);
    assert.deepStrictEqual(through(Resume.responses(at(2)), [event(3), event(5)]), [
      "responses:3:resp_1",
      ["protocol", Resume.codes.gap],
    ]);
  });

  it("refuses events without a number and those of another response", () => {
    assert.deepStrictEqual(through(Resume.responses(at(2)), [event(undefined)]), [
      ["rejected", Resume.codes.unnumbered],
    ]);
    assert.deepStrictEqual(through(Resume.responses(at(2)), [event(3, { id: "resp_2" })]), [
      ["rejected", Resume.codes.other],
    ]);
  });

  it("an error event needs no number", () => {
    const error = { ...event(undefined), observation: { ...none, failure: { kind: "overloaded" } as const } };
    assert.deepStrictEqual(through(Resume.responses(at(2)), [error]), ["no cursor"]);
  });

  it("asks for the stream behind the cursor and keeps the address's own query", () => {
    const url = Resume.responsesUrl("https://a.example/openai/v1/responses?api-version=1", at(7));
    assert.strictEqual(
      url.href,
      "https://a.example/openai/v1/responses/resp_1?api-version=1&stream=true&starting_after=7",
    );
    const odd = Resume.responsesUrl("https://a.example/v1/responses/", { response: "../x?y", sequence: 0 });
    assert.strictEqual(odd.pathname, "/v1/responses/..%2Fx%3Fy");
  });

  it("reads its own cursors and no others", () => {
    assert.deepStrictEqual(Resume.parseResponses("responses:7:resp:1"), { response: "resp:1", sequence: 7 });
    for (const text of ["", "event:0:x", "responses:x:y", "responses:1:", "responses:-1:x", "responses:1:a\nb"])
      assert.isUndefined(Resume.parseResponses(text), text);
  });

  it("any stream with repeats and no gap comes out exactly once, in order", () => {
    const seed = 7;
    const dice = seeded(seed);
    for (let round = 0; round < 300; round += 1) {
      const from = Math.floor(dice() * 10);
      const sent: Array<number> = [];
      for (let next = from + 1; next <= from + 10; next += 1) {
        while (dice() < 0.3) sent.push(Math.floor(dice() * next));
        sent.push(next);
      }
      const verifier = Resume.responses<"sse">(at(from));
      const passed = sent.filter((sequence) => verifier.take(event(sequence)).type === "pass");
      assert.deepStrictEqual(
        passed,
        Array.from({ length: 10 }, (_, index) => from + 1 + index),
        `seed ${seed}`,
      );
    }
  });
});

describe("Resume of a stream with event ids", () => {
  const step = (id?: string) => part({}, id);

  it("gives the id of each event, and counts those without one of their own behind it", () => {
    // The framer repeats the last id on events without one.
    const parts = [step(), step("a"), step("a"), comment, step("b"), step("")];
    assert.deepStrictEqual(through(Resume.events(), parts), [
      "no cursor",
      "event:0:a",
      "event:1:a",
      "no cursor",
      "event:0:b",
      "no cursor",
    ]);
  });

  it("drops what was seen behind the id, also where the server begins with the id's own event", () => {
    const resumed = { id: "a", since: 1 };
    assert.deepStrictEqual(through(Resume.events({ resumed }), [step(), step(), step("b")]), [
      "repeated",
      "event:2:a",
      "event:0:b",
    ]);
    assert.deepStrictEqual(through(Resume.events({ resumed }), [step("a"), step("a"), step("a"), step("b")]), [
      "repeated",
      "repeated",
      "event:2:a",
      "event:0:b",
    ]);
  });

  it("finds repeats and gaps where the caller knows how ids are counted", () => {
    const options = { resumed: { id: "4", since: 0 }, sequence: Number };
    assert.deepStrictEqual(through(Resume.events(options), [step("3"), step("4"), step("5"), step("7")]), [
      "repeated",
      "repeated",
      "event:0:5",
      ["protocol", Resume.codes.gap],
    ]);
    assert.deepStrictEqual(through(Resume.events(options), [step("4"), step("6")]), [
      "repeated",
      ["rejected", Resume.codes.gap],
    ]);
  });

  it("makes no cursor of ids that no header can carry", () => {
    assert.deepStrictEqual(through(Resume.events(), [step("a\u0001"), step("x".repeat(513))]), [
      "no cursor",
      "no cursor",
    ]);
  });

  it("writes the id as UTF-8, and tells the wait that the server asks for", () => {
    assert.deepStrictEqual(Resume.eventHeaders({ id: "é", since: 0 }), { "last-event-id": "Ã©" });
    const verifier = Resume.events();
    verifier.take({ ...step("a"), event: { ...step("a").event, retry: 1500 } });
    verifier.take(step("b"));
    assert.strictEqual(verifier.retryMs, 1500);
  });

  it("reads its own cursors and no others", () => {
    assert.deepStrictEqual(Resume.parseEvent("event:2:a:b"), { id: "a:b", since: 2 });
    for (const text of ["", "event:0:", "responses:0:x", "event::x"]) assert.isUndefined(Resume.parseEvent(text), text);
  });
});
