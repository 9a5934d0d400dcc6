/** Work that is the same for several requests, done once for all that ask for it in one turn of the event loop. */

export interface Asked<T> {
  readonly outcome: Promise<T>;
  /** How many have asked for the same before. */
  readonly place: number;
}

/**
 * The work begins when the turn is over, so that its outcome is no older than any of the questions.
 * @param keyOf what is the same work has the same key
 * @param work is told how many have asked
 */
export function oncePerTurn<Subject, T>(
  keyOf: (subject: Subject) => string,
  work: (subject: Subject, asking: number) => Promise<T>,
): (subject: Subject) => Asked<T> {
  const waiting = new Map<string, { asking: number; readonly outcome: Promise<T> }>();
  const begin = (key: string, subject: Subject) =>
    new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      const asking = waiting.get(key)?.asking ?? 0;
      waiting.delete(key);
      return work(subject, asking);
    });
  return (subject) => {
    const key = keyOf(subject);
    const question = waiting.get(key) ?? { asking: 0, outcome: begin(key, subject) };
    waiting.set(key, question);
    question.asking += 1;
    return { outcome: question.outcome, place: question.asking - 1 };
  };
}
