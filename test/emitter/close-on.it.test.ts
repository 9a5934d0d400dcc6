/** What ends a process at a signal, where several wait for that. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { testProgram } from '../harness/program.js';

const RECEIPT = JSON.stringify({ accepted: 1, rejected: 0, results: [{ index: 0, status: 'accepted' }] });

let server: Server;
let url: string;
/** The test that waits for the request of an emitter, by the path of its address. */
const awaited = new Map<string | undefined, (response: ServerResponse) => void>();

beforeAll(async () => {
  server = createServer(async (request, response) => {
    await text(request);
    awaited.get(request.url?.split('/')[1])?.(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
});
afterAll(() => void server.close());

/** @returns what answers the emitter's request once that is there */
async function requestTo(name: string): Promise<() => void> {
  const response = await new Promise<ServerResponse>((resolve) => awaited.set(name, resolve));
  return () => void response.writeHead(202).end(RECEIPT);
}

async function start(names: readonly string[], isBusy = false): Promise<ChildProcess> {
  const settings = JSON.stringify({ urls: names.map((name) => `${url}/${name}`), isBusy });
  const child = spawn(process.execPath, [testProgram('emitter/closing'), settings], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  return child;
}

/** @returns how much each of its emitters has sent, as it says next @throws when it ends without */
async function told(child: ChildProcess): Promise<unknown> {
  const hasEnded = new Error('the program has ended');
  if (!child.connected) throw hasEnded;
  // All that it has said comes before it.
  const ended = once(child, 'disconnect').then(() => Promise.reject(hasEnded));
  const [sent] = await Promise.race([once(child, 'message'), ended]);
  return sent;
}

async function ask(child: ChildProcess): Promise<unknown> {
  const answer = told(child);
  child.send('how much?', () => undefined);
  return answer;
}

it.concurrent('the signal ends a program that does nothing else at it, once all is sent, however often it comes', async () => {
  const request = requestTo('alone');
  const child = await start(['alone']);
  const end = once(child, 'exit');
  child.kill('SIGTERM');
  const answer = await request;
  child.kill('SIGTERM');
  answer();
  expect(await end).toEqual([null, 'SIGTERM']);
});

it.concurrent('a program that listens once for the signal ends itself, after the emitter has closed', async () => {
  const request = requestTo('busy');
  const child = await start(['busy'], true);
  const [closed, end] = [once(child, 'message'), once(child, 'exit')];
  child.kill('SIGTERM');
  (await request)();
  await Promise.race([closed, end]);
  if (child.connected) child.send('your work is done');
  expect(await end).toEqual([7, null]);
});

it.concurrent('of two emitters the slower one sends all it has, and then the signal ends the program', async () => {
  const [quick, slow] = [requestTo('quick'), requestTo('slow')];
  const child = await start(['quick', 'slow']);
  const end = once(child, 'exit');
  child.kill('SIGTERM');
  const answers = await Promise.all([quick, slow]);
  const quickClosed = told(child);
  answers[0]();
  expect(await quickClosed).toEqual([1, 0]);
  // If that had let the signal end the program, it would be gone.
  expect(await ask(child)).toEqual([1, 0]);
  const slowClosed = told(child);
  answers[1]();
  expect(await slowClosed).toEqual([1, 1]);
  expect(await end).toEqual([null, 'SIGTERM']);
});
