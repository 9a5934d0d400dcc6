/**
 * Answers that are kept, in bounded memory, as long as the stamp of their account says that they are the answer still, and
 * answers under way, which are computed once for all who ask meanwhile. Why neither lacks an acknowledged event: see AnswerStamps
 * in packages/access.
 */
import type { Stamps } from '@meterline/access';
import { ClientGone } from '@meterline/api';
import { LRUCache } from 'lru-cache';
import { type Answer, compressedAnswer, isWorthCompressing } from './answer-body.js';

/** An answer, and which of the account's stamps it depends on. */
export interface Computed {
  readonly answer: Answer;
  readonly basis: keyof Stamps;
}

interface Kept extends Computed {
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
  /** By question and stamps. */
  readonly #underWay = new Map<string, Promise<Computed>>();
  readonly #compressing = new WeakMap<Answer, Promise<Answer>>();
  readonly #observe: (outcome: Outcome) => void;

  /** @param maxBytes of the bodies and their questions; 0: nothing is kept, and everything is computed */
  constructor(maxBytes: number, observe: (outcome: Outcome) => void = () => undefined) {
    this.#observe = observe;
    if (maxBytes === 0) return;
    this.#kept = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ answer: { body } }, question) => body.length + 2 * question.length + ENTRY_BYTES,
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
    return kept.answer;
  }

  /**
   * An answer that others wait for already; undefined if there is none, or if it was given up because its client has gone.
   * @throws what it has failed with otherwise: it would fail so again
   */
  async join(question: string, stamps: Stamps): Promise<Answer | undefined> {
    const underWay = this.#underWay.get(keyOf(question, stamps));
    if (!underWay) return undefined;
    try {
      const { answer } = await underWay;
      this.#observe('shared');
      return answer;
    } catch (error) {
      if (error instanceof ClientGone) return undefined;
      throw error;
    }
  }

  /**
   * The answer compressed, if that is worth it: once for all who ask. If it is kept, it is kept so from then on, in a tenth of the
   * memory.
   */
  async compressed(question: string, answer: Answer): Promise<Answer> {
    if (!isWorthCompressing(answer)) return answer;
    const underWay = this.#compressing.get(answer);
    if (underWay) return underWay;
    const compressing = this.#compress(question, answer);
    this.#compressing.set(answer, compressing);
    // The next one to ask tries again.
    compressing.catch(() => this.#compressing.delete(answer));
    return compressing;
  }

  async #compress(question: string, answer: Answer): Promise<Answer> {
    const compressed = await compressedAnswer(answer);
    const kept = this.#kept?.peek(question);
    if (kept?.answer === answer) this.#kept?.set(question, { ...kept, answer: compressed }, { noUpdateTTL: true });
    return compressed;
  }

  isUnderWay(question: string, stamps: Stamps): boolean {
    return this.#underWay.has(keyOf(question, stamps));
  }

  /**
   * Computes an answer, for all who ask meanwhile, and keeps it.
   * @param stamps as they were read before anything else that the answer is made of
   */
  async compute(question: string, stamps: Stamps, work: () => Promise<Computed>): Promise<Answer> {
    this.#observe('miss');
    const key = keyOf(question, stamps);
    const underWay = work();
    this.#underWay.set(key, underWay);
    try {
      const { answer, basis } = await underWay;
      this.#kept?.set(question, { answer, basis, stamp: stamps[basis] });
      return answer;
    } finally {
      if (this.#underWay.get(key) === underWay) this.#underWay.delete(key);
    }
  }
}

function keyOf(question: string, { sealed, any }: Stamps): string {
  return JSON.stringify([question, sealed, any]);
}
