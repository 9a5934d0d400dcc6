/** Where events go. */
import { EmitterError } from './options.js';

export interface Transport {
  /**
   * Resolves when the events are accepted: from then on Meterline is responsible for them. Rejects when they are not, or when that is
   * not known; they are sent again then, which is harmless.
   * @param events JSON texts, 1 to 5,000
   */
  send(events: readonly string[]): Promise<void>;

  /** Closes connections at once. What is being sent rejects. */
  close(): void;
}

/**
 * Chooses by the address, and loads no other.
 * @throws EmitterError when there is none for this address, or a package that it needs is missing; not because nobody answers there
 */
export async function openTransport(url: string, queuePrefix: string): Promise<Transport> {
  // The messages do not repeat the address, which may hold a password.
  switch (URL.canParse(url) ? new URL(url).protocol : '') {
    case 'redis:':
    case 'rediss:':
      return (await import('./queue-transport.js')).openQueueTransport(url, queuePrefix);
    case 'http:':
    case 'https:':
      throw new EmitterError(
        'invalid_option',
        'url is an HTTP address; this release sends to Redis alone: give its redis:// address',
      );
    default:
      throw new EmitterError('invalid_option', 'url must be an address such as redis://127.0.0.1:6379');
  }
}
