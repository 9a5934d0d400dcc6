/** What a comparison finds. Marks are those of {@link UsageStream}. */
export interface Verdict {
  /** Accepted events that the answer lacks or shows in another form than the one that must win; refused ones not kept. */
  readonly lost: readonly string[];
  /** Events that count more than once; refused ones kept more often than they were sent. */
  readonly doubled: readonly string[];
  readonly complaints: readonly string[];
}

export function merge(...verdicts: readonly Verdict[]): Verdict {
  return {
    lost: verdicts.flatMap(({ lost }) => lost),
    doubled: verdicts.flatMap(({ doubled }) => doubled),
    complaints: verdicts.flatMap(({ complaints }) => complaints),
  };
}

export function isClean({ lost, doubled, complaints }: Verdict): boolean {
  return lost.length + doubled.length + complaints.length === 0;
}
