/** A minimal HTTP client with keep-alive, so that the client adds little to the measured time. */
import { Agent, request } from 'node:http';

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  /** From the call to the last byte of the answer. */
  readonly ms: number;
}

export class HttpClient {
  readonly #agent: Agent;

  constructor(connections = 1) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** @param body sent with POST if given */
  async send(url: string, headers: Readonly<Record<string, string>> = {}, body?: string | Buffer): Promise<HttpAnswer> {
    const chunks: Buffer[] = [];
    const { status, ms } = await this.#exchange(url, headers, body, (chunk) => chunks.push(chunk));
    return { status, ms, text: Buffer.concat(chunks).toString('utf8') };
  }

  /** Asks, and reads the answer without looking at it, so that many clients take little of the machine. */
  ask(url: string, headers: Readonly<Record<string, string>>): Promise<Omit<HttpAnswer, 'text'>> {
    return this.#exchange(url, headers, undefined, () => undefined);
  }

  #exchange(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string | Buffer | undefined,
    onChunk: (chunk: Buffer) => void,
  ): Promise<Omit<HttpAnswer, 'text'>> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST';
      const sent = request(url, { method, headers, agent: this.#agent }, (response) => {
        response.on('data', onChunk);
        response.once('error', reject);
        response.once('end', () => {
          resolve({ status: response.statusCode ?? 0, ms: performance.now() - started });
        });
      });
      sent.once('error', reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** @throws Error that quotes the answer, if its status is not 200 */
export function checked(answer: HttpAnswer): HttpAnswer {
  if (answer.status !== 200) throw new Error(`answered with ${answer.status}: ${answer.text.slice(0, 500)}`);
  return answer;
}
