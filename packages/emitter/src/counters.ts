/** How many events an emitter has had to do with since it was opened. */
export interface Counters {
  /** Those that `record` has taken, sums and slices of timers included. */
  readonly recorded: number;
  /** Those that are accepted, recovered ones included. */
  readonly sent: number;
  /** Sent once more, because an attempt failed or its outcome is unknown. */
  readonly retried: number;
  /** Against the rules of an event: not taken, or taken, sent, and refused by the collector. */
  readonly refused: number;
  /** Not taken for lack of room, or because the emitter is closed. */
  readonly dropped: number;
  /** Those of the recorded ones that are in the spool, or were. */
  readonly spooled: number;
  /** Recorded now or found in the spool, and neither sent nor refused yet. It may fall. */
  readonly unsent: number;
}

/** The same while they are counted. */
export type Tally = { -readonly [name in keyof Omit<Counters, 'unsent'>]: number };
