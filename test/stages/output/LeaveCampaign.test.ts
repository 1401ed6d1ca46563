/** The schedules of LeaveAnywhere.test.ts over the seeds behind those that it plays. */
import { describe, it } from "@effect/vitest";
import { campaign } from "../../Campaigns.ts";
import { leavesAnywhere } from "./LeaveCases.ts";

const seeds = campaign(300);

describe("a campaign of schedules of leaving, attaching and breaking", () => {
  it.effect(`${seeds} seeds from 100: nothing twice, nothing missing, and no fact that says less than was shown`, () =>
    leavesAnywhere(100, seeds),
  );
});
