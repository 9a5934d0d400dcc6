/** The result of a comparison. Marks are those of {@link UsageStream}. */
export interface Verdict {
  /** Accepted events that are missing or show a payload that should not win, and refused events that were not kept. */
  readonly lost: readonly string[];
  /** Events that count more than once, and refused events that were kept more often than sent. */
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
