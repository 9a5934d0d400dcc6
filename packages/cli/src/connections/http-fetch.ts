/**
 * Sends the client's requests with Node's own HTTP client. Its `fetch` is loaded when it is first called, and takes longer to load than
 * everything else that a command loads before its request.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Fetch } from '@meterline/client';

/** That of `fetch`: an address that takes packets and says nothing is given up sooner than an answer that takes long. */
const CONNECTED_WITHIN_MS = 10_000;

/**
 * Follows no redirection by itself: with one, the request is sent again by `fetch`, which knows their rules.
 * @throws the signal's reason, else the error of the system or of what was received, with a code
 */
export const httpFetch: Fetch = async (url, init) => {
  const { method, headers, body, signal } = init;
  const { request } = await (url.startsWith('https:') ? import('node:https') : import('node:http'));
  const options: RequestOptions = {
    method,
    headers: { 'User-Agent': 'meterline', ...headers, 'Accept-Encoding': 'gzip' },
    signal,
    timeout: CONNECTED_WITHIN_MS,
  };
  try {
    const response = await answerTo(request(url, options), body);
    const { statusCode: status = 0, headers: received } = response;
    if (status >= 300 && status < 400 && received.location !== undefined) {
      response.resume();
      return await fetch(url, init);
    }
    return {
      ok: status >= 200 && status < 300,
      status,
      headers: { get: (name) => headerText(received[name]) },
      text: () => textOf(response, signal),
    };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
};

function answerTo(request: ClientRequest, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve).on('error', reject);
    request.on('timeout', () => {
      if (!request.socket?.connecting) return;
      request.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
    });
    request.end(body);
  });
}

async function textOf(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  const content = Buffer.concat(chunks);
  if (response.headers['content-encoding'] !== 'gzip') return new TextDecoder().decode(content);
  const [{ gunzip }, { promisify }] = await Promise.all([import('node:zlib'), import('node:util')]);
  return new TextDecoder().decode(await promisify(gunzip)(content));
}

function headerText(header: string | string[] | undefined): string | null {
  return header === undefined ? null : header.toString();
}
