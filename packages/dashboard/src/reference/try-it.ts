/** The forms that send a request with the reader's key to this service, and show the answer as it came. */

import { formatTimestamp, MS_PER_DAY } from '@meterline/catalog';
import { MeterlineClient } from '@meterline/client';
import { askOtherTabs, keepCredential, keptCredential } from '../shell/credential.js';
import { indentJson } from './json-text.js';
import { type Given, requestOf } from './request.js';

/** In characters; a browser takes long to lay out more. */
const MOST_SHOWN = 200_000;
const TIMEOUT_MS = 60_000;
const SHOWN_DAYS = 7;

export function enableForms(): void {
  for (const details of document.querySelectorAll<HTMLDetailsElement>('details.try')) {
    const form = details.querySelector('form');
    const outcome = details.querySelector<HTMLElement>('.outcome');
    if (!form || !outcome) continue;
    fillWindow(form);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void send(form, outcome);
    });
    details.addEventListener('toggle', () => void findCredential(), { once: true });
    details.hidden = false;
  }
  for (const input of credentialInputs()) {
    input.addEventListener('change', () => enterCredential(input.value));
  }
}

function credentialInputs(): NodeListOf<HTMLInputElement> {
  return document.querySelectorAll<HTMLInputElement>('input.credential');
}

/** That of this tab, or of another one in which somebody is signed in. */
async function findCredential(): Promise<void> {
  const found = keptCredential() ?? (await askOtherTabs(undefined));
  if (found !== undefined) enterCredential(found);
}

let used = '';

/** In all forms, and in the cost explorer if it is opened in this tab. */
function enterCredential(text: string): void {
  const credential = text.trim().replace(/^Bearer +/i, '');
  for (const input of credentialInputs()) input.value = credential;
  if (credential === '' || credential === used) return;
  used = credential;
  keepCredential(credential);
  void suggestAccount(credential);
}

/** The caller's first account instead of the example's, which is nobody's. A failure shows when the request is sent. */
async function suggestAccount(credential: string): Promise<void> {
  const client = new MeterlineClient({ baseUrl: location.origin, credential, retries: 0 });
  const [first] = await client.accounts().catch(() => []);
  if (!first) return;
  for (const input of document.querySelectorAll<HTMLInputElement>('[data-name="accountId"] input')) {
    if (input.value === input.defaultValue) input.value = first.id;
  }
}

/** The last days instead of those of the example. */
function fillWindow(form: HTMLFormElement): void {
  const tomorrow = Math.ceil(Date.now() / MS_PER_DAY) * MS_PER_DAY;
  for (const [name, time] of [
    ['startTime', tomorrow - SHOWN_DAYS * MS_PER_DAY],
    ['endTime', tomorrow],
  ] as const) {
    const input = form.querySelector<HTMLInputElement>(`[data-name="${name}"] input`);
    if (input) input.value = formatTimestamp(time);
  }
}

async function send(form: HTMLFormElement, outcome: HTMLElement): Promise<void> {
  const { method = 'GET', path = '' } = form.dataset;
  const fields = [...form.querySelectorAll<HTMLElement>('[data-name]')];
  const missing = fields.find((field) => field.querySelector('.needed') && valuesOf(field).length === 0);
  if (missing) {
    missing.querySelector<HTMLElement>('input, textarea, select')?.focus();
    return showProblem(outcome, `${missing.dataset['name']} is required.`);
  }
  const { target, headers } = requestOf(path, fields.map(givenOf));
  const credential = form.querySelector<HTMLInputElement>('input.credential')?.value ?? '';
  const body = form.querySelector<HTMLTextAreaElement>('textarea[name="body"]')?.value;
  outcome.replaceChildren(element('p', 'hint', 'Sending…'));
  const started = performance.now();
  try {
    const response = await fetch(target, {
      method,
      headers: {
        ...headers,
        ...(credential !== '' && { Authorization: `Bearer ${credential}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      cache: 'no-store',
      credentials: 'omit',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    showAnswer(outcome, { request: `${method} ${target}`, response, text, took: performance.now() - started });
  } catch (error) {
    showProblem(outcome, error instanceof Error ? error.message : String(error));
  }
}

function givenOf(field: HTMLElement): Given {
  const { name = '', in: place, values } = field.dataset;
  const known = place === 'path' || place === 'header' ? place : 'query';
  return { name, place: known, isEach: values === 'each', values: valuesOf(field) };
}

function valuesOf(field: HTMLElement): string[] {
  const boxes = [...field.querySelectorAll<HTMLInputElement>('input[type="checkbox"]')];
  if (boxes.length > 0) return boxes.filter(({ checked }) => checked).map(({ value }) => value);
  const control = field.querySelector<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(
    'input, select, textarea',
  );
  const text = control?.value ?? '';
  const values = control instanceof HTMLTextAreaElement ? text.split('\n') : [text];
  return values.filter((value) => value !== '');
}

interface Answer {
  readonly request: string;
  readonly response: Response;
  readonly text: string;
  /** Milliseconds. */
  readonly took: number;
}

function showAnswer(outcome: HTMLElement, { request, response, text, took }: Answer): void {
  const { headers, ok, status } = response;
  const facts = element('p', 'facts', '');
  facts.append(
    element('span', ok ? 'status ok' : 'status', String(status)),
    element('span', 'hint', `${Math.round(took)} ms`),
  );
  const requestId = headers.get('x-request-id');
  if (requestId !== null) facts.append(element('span', 'hint', `request ${requestId}`));
  const isJson = headers.get('content-type')?.startsWith('application/json') ?? false;
  const shown = isJson ? indentJson(text) : text;
  const answer = element('pre', 'answer', shown.slice(0, MOST_SHOWN) || '(no body)');
  answer.tabIndex = 0;
  outcome.replaceChildren(element('code', 'sent', request), facts, answer);
  if (shown.length > MOST_SHOWN) outcome.append(element('p', 'hint', 'The rest is too long to be shown here.'));
}

function showProblem(outcome: HTMLElement, text: string): void {
  outcome.replaceChildren(element('p', 'fault', text));
}

function element(name: string, className: string, text: string): HTMLElement {
  const created = document.createElement(name);
  created.className = className;
  created.textContent = text;
  return created;
}
