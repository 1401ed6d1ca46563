/**
 * Measures contenders in turns: in every round each of them plays the same load once, in an order that changes, so that what
 * slows the machine for a while slows all of them.
 */

/** A number of each contender in one round, by its name. */
export type Round = ReadonlyMap<string, number>;

/** The order of a round: the same circle, begun one place later, and backwards every other time round. */
export const orderOf = <A>(contenders: ReadonlyArray<A>, round: number): ReadonlyArray<A> => {
  const start = round % contenders.length;
  const turned = [...contenders.slice(start), ...contenders.slice(0, start)];
  return Math.floor(round / contenders.length) % 2 === 0 ? turned : turned.toReversed();
};

/** What one contender took for each unit against another, in each round that has both. */
export const ratios = (rounds: ReadonlyArray<Round>, name: string, against: string): ReadonlyArray<number> =>
  rounds.flatMap((round) => {
    const [own, other] = [round.get(name), round.get(against)];
    return own === undefined || other === undefined ? [] : [own / other];
  });

/** What one contender took in each round. */
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
