/**
 * Scales the number of seeds that a campaign of the long suite plays. `npm run campaigns` plays a multiple of them.
 */
export const campaign = (seeds: number): number => seeds * Number(process.env.CAMPAIGN_TIMES ?? 1);
