/**
 * Measures contenders in turns. In every round each plays the same load once, in a changing order, so that a temporary slowdown of the
 * machine affects all of them.
 */

/** One number per contender in one round, by name. */
export type Round = ReadonlyMap<string, number>;

/** The order of a round: rotated by one place each round, and reversed in every other rotation. */
export const orderOf = <A>(contenders: ReadonlyArray<A>, round: number): ReadonlyArray<A> => {
  const start = round % contenders.length;
  const turned = [...contenders.slice(start), ...contenders.slice(0, start)];
  return Math.floor(round / contenders.length) % 2 === 0 ? turned : turned.toReversed();
};

/** The ratios of one contender to another, for each round that has both. */
export const ratios = (rounds: ReadonlyArray<Round>, name: string, against: string): ReadonlyArray<number> =>
  rounds.flatMap((round) => {
    const [own, other] = [round.get(name), round.get(against)];
    return own === undefined || other === undefined ? [] : [own / other];
  });

/** The values of one contender, one per round. */
export const valuesOf = (rounds: ReadonlyArray<Round>, name: string): ReadonlyArray<number> =>
  rounds.flatMap((round) => round.get(name) ?? []);

/** Plays the rounds. */
export const play = async <A extends { readonly name: string }>(
  contenders: ReadonlyArray<A>,
  rounds: number,
  measure: (contender: A) => Promise<number>,
): Promise<ReadonlyArray<Round>> => {
  const played: Array<Round> = [];
  for (let round = 0; round < rounds; round += 1) {
    const values = new Map<string, number>();
    for (const contender of orderOf(contenders, round)) values.set(contender.name, await measure(contender));
    played.push(values);
  }
  return played;
};
