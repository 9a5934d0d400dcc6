/**
 * Does something so many times, in some lanes at once.
 * @param once reports each status that it gets
 * @returns how often each status was reported
 */
export async function inLanes(
  { lanes, count }: { lanes: number; count: number },
  once: (report: (status: number) => void) => Promise<void>,
): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  let left = count;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await once((status) => statuses.set(status, (statuses.get(status) ?? 0) + 1));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return statuses;
}
