/** Where events go. */
import { EmitterError } from './options.js';

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

/** Events are not taken now, and are kept. */
export class NotTaken extends Error {
  /** They are not sent again before so many milliseconds. */
  readonly pauseMs: number;
  /** Whether no events are taken at the moment, of no lane. */
  readonly isAway: boolean;

  constructor(message: string, pauseMs: number, isAway = false) {
    super(message);
    this.pauseMs = pauseMs;
    this.isAway = isAway;
  }
}

/** The part of an emitter's options that says where events go. */
export interface Destination {
  readonly url: string;
  readonly queuePrefix: string;
  readonly apiKey: ApiKey | undefined;
}

/** A key, or what gives that of an account; it is asked before every attempt, so that keys can be renewed. */
export type ApiKey = string | ((accountId: string) => string | Promise<string>);

/**
 * Chooses by the address, and loads no other.
 * @throws EmitterError when there is none for this address, or what it needs is missing; not because nobody answers there
 */
export async function openTransport({ url, queuePrefix, apiKey }: Destination): Promise<Transport> {
  // The messages do not repeat the address, which may hold a password.
  switch (URL.canParse(url) ? new URL(url).protocol : '') {
    case 'redis:':
    case 'rediss:':
      return (await import('./queue-transport.js')).openQueueTransport(url, queuePrefix);
    case 'http:':
    case 'https:':
      return (await import('./http-transport.js')).openHttpTransport(url, apiKey);
    default:
      throw new EmitterError('invalid_option', 'url must be an address such as https://… or redis://127.0.0.1:6379');
  }
}
