/**
 * Answers that are kept, in bounded memory, as long as the stamp of their account says that they are the answer still, and
 * answers under way, which are computed once for all who ask meanwhile. Why neither lacks an acknowledged event: see AnswerStamps
 * in packages/access.
 */
import { createHash } from 'node:crypto';
import type { Stamps } from '@meterline/access';
import { LRUCache } from 'lru-cache';

/** The body of an answer as it is sent, and its entity tag. */
export interface Answer {
  readonly body: Buffer;
  /** Weak (RFC 9110, section 8.8.1), because the body may be sent compressed. */
  readonly etag: string;
}

export function answerOf(json: string): Answer {
  const body = Buffer.from(json);
  return { body, etag: `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
}

/** Which of an account's stamps an answer depends on. */
export type Basis = keyof Stamps;

interface Kept extends Answer {
  readonly basis: Basis;
  readonly stamp: string;
}

/** What became of the questions that could be answered with a kept answer. `shared`: with one that was under way. */
export type Outcome = 'hit' | 'shared' | 'miss';

/** Long enough for a dashboard that is open; what is not asked for is not to stay in memory for ever. */
const KEPT_MS = 3_600_000;
/** Of an entry beside its body and its question, about. */
const ENTRY_BYTES = 500;

export class KeptAnswers {
  readonly #kept: LRUCache<string, Kept> | undefined;
  /** By question and stamp. */
  readonly #underWay = new Map<string, Promise<Answer>>();
  readonly #observe: (outcome: Outcome) => void;

  /** @param maxBytes of the bodies and their questions; 0: nothing is kept, and everything is computed */
  constructor(maxBytes: number, observe: (outcome: Outcome) => void = () => undefined) {
    this.#observe = observe;
    if (maxBytes === 0) return;
    this.#kept = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ body }, question) => body.length + 2 * question.length + ENTRY_BYTES,
      ttl: KEPT_MS,
      ttlAutopurge: true,
    });
  }

  get isOn(): boolean {
    return this.#kept !== undefined;
  }

  get bytes(): number {
    return this.#kept?.calculatedSize ?? 0;
  }

  /** Whether there is an answer, which may be out of date. */
  has(question: string): boolean {
    return this.#kept?.has(question) ?? false;
  }

  /** @param stamps as the request that asks has read them */
  find(question: string, stamps: Stamps | undefined): Answer | undefined {
    const kept = stamps && this.#kept?.get(question);
    if (!kept || kept.stamp !== stamps[kept.basis]) return undefined;
    this.#observe('hit');
    return kept;
  }

  /** An answer that others wait for already; undefined if there is none, or it fails. */
  async join(question: string, stamp: string): Promise<Answer | undefined> {
    const answer = await this.#underWay.get(keyOf(question, stamp))?.catch(() => undefined);
    if (answer) this.#observe('shared');
    return answer;
  }

  isUnderWay(question: string, stamp: string): boolean {
    return this.#underWay.has(keyOf(question, stamp));
  }

  /**
   * Computes an answer, for all who ask meanwhile, and keeps it.
   * @param stamp of this basis, as it was read before anything else that the answer is made of
   */
  async compute(question: string, basis: Basis, stamp: string, work: () => Promise<Answer>): Promise<Answer> {
    this.#observe('miss');
    const key = keyOf(question, stamp);
    const answer = work();
    this.#underWay.set(key, answer);
    try {
      this.#kept?.set(question, { ...(await answer), basis, stamp });
    } finally {
      if (this.#underWay.get(key) === answer) this.#underWay.delete(key);
    }
    return answer;
  }
}

function keyOf(question: string, stamp: string): string {
  return JSON.stringify([question, stamp]);
}
