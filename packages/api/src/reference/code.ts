/**
 * The request of an example in three languages. `METERLINE_URL` and `METERLINE_API_KEY` stand for what only the reader knows.
 * The contract tests run all of them.
 */
import type { ExampleRequest } from '../openapi/requests.js';

export const LANGUAGES = ['curl', 'TypeScript', 'Python'] as const;
export type Language = (typeof LANGUAGES)[number];

export function codeOf(language: Language, operationId: string, request: ExampleRequest): string {
  if (language === 'curl') return curl(request);
  if (language === 'Python') return python(request);
  const call = CLIENT_CALLS[operationId];
  return call === undefined
    ? typeScriptFetch(request)
    : typeScriptClient(call(request.parameters, request.body), request);
}

function curl({ method, target, headers, needsCredential, body }: ExampleRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  if (needsCredential) lines.unshift('Authorization: Bearer $METERLINE_API_KEY');
  const options = [
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    ...lines.map((text) => `-H "${text}"`),
    ...(body === undefined ? [] : [`-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]),
  ];
  return ['curl -s', ...options, `"$METERLINE_URL${target}"`].join(' \\\n  ');
}

type Parameters = ExampleRequest['parameters'];

/** What `@meterline/client` has for an operation; for others, requests are written out. */
const CLIENT_CALLS: Readonly<Record<string, (parameters: Parameters, body: unknown) => string>> = {
  getAccountMetrics: ({ accountId, ...query }) => `metrics(${script(accountId)}, ${script(query)})`,
  listEvents: ({ accountId, ...query }) => `events(${script(accountId)}, ${script(query)})`,
  listGroupByDimensions: ({ accountId }) => `groupByDimensions(${script(accountId)})`,
  listResourceTypes: ({ accountId, ...query }) => `resourceTypes(${script(accountId)}, ${script(query)})`,
  listBillingDimensions: ({ accountId }) => `billingDimensions(${script(accountId)})`,
  listAccounts: () => 'accounts()',
  createApiKey: ({ clientId }, body) => `createApiKey(${script(clientId)}, ${script(body)})`,
  listApiKeys: ({ clientId }) => `apiKeys(${script(clientId)})`,
  revokeApiKey: ({ clientId, apiKeyId }) => `revokeApiKey(${script(clientId)}, ${script(apiKeyId)})`,
};

function typeScriptClient(call: string, { headers, answer }: ExampleRequest): string {
  const apiVersion = headers['Svc-Version'];
  const options = [
    "  baseUrl: process.env.METERLINE_URL ?? '',",
    "  credential: process.env.METERLINE_API_KEY ?? '',",
    ...(apiVersion === undefined ? [] : [`  apiVersion: ${script(apiVersion)},`]),
  ];
  const ask = answer === undefined ? `await client.${call};` : `console.log(await client.${call});`;
  return `import { MeterlineClient } from '@meterline/client';

const client = new MeterlineClient({
${options.join('\n')}
});
${ask}`;
}

function typeScriptFetch({ method, target, headers, needsCredential, body }: ExampleRequest): string {
  const fields = Object.entries(headers).map(([name, value]) => `    ${member(name)}: ${script(value)},\n`);
  if (needsCredential) fields.unshift(`    Authorization: \`Bearer \${process.env.METERLINE_API_KEY}\`,\n`);
  const options = [
    ...(method === 'GET' ? [] : [`  method: ${script(method)},\n`]),
    ...(fields.length === 0 ? [] : [`  headers: {\n${fields.join('')}  },\n`]),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${script(body, '  ')}),\n`]),
  ];
  const url = `\`\${process.env.METERLINE_URL}${target}\``;
  const call = options.length === 0 ? `fetch(${url})` : `fetch(${url}, {\n${options.join('')}})`;
  return `const response = await ${call};
if (!response.ok) throw new Error(await response.text());
console.log(await response.text());`;
}

function python({ method, target, headers, needsCredential, body, answer }: ExampleRequest): string {
  const fields = Object.entries(headers).map(
    ([name, value]) => `        ${pythonValue(name)}: ${pythonValue(value)},\n`,
  );
  if (needsCredential) fields.unshift('        "Authorization": "Bearer " + os.environ["METERLINE_API_KEY"],\n');
  const options = [
    ...(method === 'GET' ? [] : [`    method=${pythonValue(method)},\n`]),
    ...(fields.length === 0 ? [] : [`    headers={\n${fields.join('')}    },\n`]),
    ...(body === undefined ? [] : [`    data=json.dumps(${pythonValue(body)}).encode(),\n`]),
  ];
  const hasJson = answer !== undefined || body !== undefined;
  return `${hasJson ? 'import json\n' : ''}import os
${answer === undefined ? '' : 'from decimal import Decimal\n'}from urllib.request import Request, urlopen

request = Request(
    os.environ["METERLINE_URL"] + ${pythonValue(target)},
${options.join('')})
with urlopen(request) as response:
    print(${answer === undefined ? 'response.status' : 'json.load(response, parse_float=Decimal)'})`;
}

/** A value as it stands in TypeScript. */
function script(value: unknown, indent = ''): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
  if (Array.isArray(value)) return `[${value.map((item) => script(item)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const members = Object.entries(value).map(
    ([name, item]) => `${indent}  ${member(name)}: ${script(item, `${indent}  `)},\n`,
  );
  return `{\n${members.join('')}${indent}}`;
}

function member(name: string): string {
  return /^\w+$/.test(name) ? name : script(name);
}

/** A value as it stands in Python: that of JSON, but for three words. */
function pythonValue(value: unknown): string {
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (value === null) return 'None';
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, item]) => `${JSON.stringify(name)}: ${pythonValue(item)}`)
    .join(', ')}}`;
}
