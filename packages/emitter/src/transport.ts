/** Where events go. */
export interface Transport {
  /** Events of one lane are accepted or not for the same reasons, and are sent together; a batch may hold several lanes. */
  laneOf(text: string): string;

  /**
   * Resolves when the events are accepted, but for those that are refused for good: from then on Meterline is responsible for them.
   * Rejects when they are not, or when that is not known; they are sent again then, which is harmless.
   * @param texts of events in JSON, 1 to 5,000, of one lane
   * @throws NotTaken when somebody answers and says no, another error when nobody does
   */
  send(texts: readonly string[], lane: string): Promise<readonly Refusal[]>;

  /** Closes connections at once. What is being sent rejects. */
  close(): void;
}

/** Why an event will never be accepted. */
export interface Refusal {
  /** The event's place among those that were sent. */
  readonly index: number;
  /** A code of the catalog, or of a newer service. */
  readonly reason: string;
  readonly message: string;
}

/** A key, or what gives that of an account; it is asked before every attempt, so that keys can be renewed. */
export type ApiKey = string | ((accountId: string) => string | Promise<string>);
