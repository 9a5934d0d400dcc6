/** Asks a server that starts whether it answers yet. */
import { get } from 'node:http';

const TIMEOUT_MS = 5_000;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/**
 * Rejects when there is no answer in time. The connection is a new one, and closed. Not `fetch`, which takes twice the processor
 * time to load and for each attempt, while what starts needs it.
 */
export function ask(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    // ClickHouse shuts down in milliseconds, but waits for seconds while an idle connection is kept alive.
    get(url, { agent: false, headers: { ...headers, connection: 'close' }, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.once('error', reject).once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    }).once('error', reject);
  });
}
