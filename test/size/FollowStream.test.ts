import { assert, describe, it } from "@effect/vitest";
import { lineOf, steps } from "../../scripts/size/FollowStream.ts";

describe("Follow a stream", () => {
  it("names only functions that their files define", () => {
    assert.deepStrictEqual(
      steps.filter((step) => lineOf(step) === undefined),
      [],
    );
  });

  it("does not take a call of a function for its definition", () => {
    assert.isUndefined(lineOf({ file: "src/gateway/Requests.ts", name: "routingOf" }));
  });
});
