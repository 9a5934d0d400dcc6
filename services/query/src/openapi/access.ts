/** Describes the operations for accounts and API keys. Contract tests send the examples and compare the responses. */
import type { OpenApiParameter, OperationSketch } from '@meterline/api';
import {
  ACCOUNT_LIST_PARAMETERS,
  API_KEY_LIST_PARAMETERS,
  SERVICE_ACCOUNT_KEY_LIST_PARAMETERS,
} from '@meterline/catalog';
import { API_ERRORS } from '../http/errors.js';

const IGNORED_WORKSPACE: OpenApiParameter = {
  required: false,
  name: 'workspace',
  in: 'query',
  schema: { type: 'string' },
  description:
    'Accepted and ignored, like the header `X-Svc-Workspace`: accounts and keys do not belong to workspaces.',
};
const LIST_VERSIONS =
  'Since version 2026-04-28, the response is an object with pages, and parameters are accepted. Earlier versions return an array of all entries.';

const LAST_PAGE = { hasMore: false, nextCursor: '', total: 1 };
const createdAt = '2025-11-15T12:00:00.000Z';
const ACCOUNT = { id: 'acme', name: 'acme', role: 'admin', createdAt };
const KEY_ID = '3bd5a0f1c2e49b687d05aa31';
const CLIENT_ID = 'client_1f9a3c0b5d7e24680a';
const KEY = {
  id: KEY_ID,
  clientId: CLIENT_ID,
  account: 'acme',
  role: 'member',
  createdAt,
  expiresAt: '2026-11-15T00:00:00.000Z',
};

const COMMON = { tag: 'Access', otherParameters: [IGNORED_WORKSPACE], errors: [...API_ERRORS, 'NotFound'] } as const;
const KEYS = '/v0/service_accounts/{clientId}/api_keys';

const KEYS_RESPONSE = { description: 'The keys.', schemas: ['ApiKeyPage', 'ApiKeyArray'] };

export const ACCESS_OPERATIONS: readonly OperationSketch[] = [
  {
    ...COMMON,
    method: 'get',
    path: '/v0/accounts',
    operationId: 'listAccounts',
    summary: 'List the accounts of the caller',
    description:
      'The accounts that the key or token may read, each with the caller’s role. Operators and provisioners get all accounts that ' +
      'have a name, have had a key or have usage. New names appear within five seconds, new usage within a minute. ' +
      LIST_VERSIONS,
    query: ACCOUNT_LIST_PARAMETERS,
    success: { description: 'The accounts.', schemas: ['AccountPage', 'AccountArray'] },
    examples: {
      page: {
        summary: 'A page, since version 2026-04-28',
        parameters: { 'Svc-Version': '2026-04-28', sort: 'name:asc', limit: 50 },
        response: { data: [ACCOUNT], meta: LAST_PAGE },
      },
      array: {
        summary: 'All accounts at once, at version 2026-04-16',
        parameters: { 'Svc-Version': '2026-04-16' },
        response: [ACCOUNT],
      },
    },
    errors: API_ERRORS,
  },
  {
    ...COMMON,
    isExtension: true,
    method: 'put',
    path: '/v0/accounts/{accountId}',
    operationId: 'nameAccount',
    summary: 'Name an account',
    description:
      'Names the account, and registers it if it is new. For provisioners only. Repeating the request changes nothing. An account does ' +
      'not have to be registered to have usage. The default name is the account ID.',
    body: ['AccountSettings'],
    success: { description: 'The account with its new name.', schemas: ['Account'] },
    examples: {
      onboarding: {
        summary: 'A new account',
        parameters: { accountId: 'globex' },
        body: { name: 'Globex Corp.' },
        response: { id: 'globex', name: 'Globex Corp.', role: 'provisioner', createdAt },
      },
    },
    errors: API_ERRORS,
  },
  {
    ...COMMON,
    isExtension: true,
    method: 'get',
    path: '/v0/accounts/{accountId}/api_keys',
    operationId: 'listAccountApiKeys',
    summary: 'List the API keys of an account',
    description:
      'The keys of all service accounts of an account, including revoked and expired keys. For admins of the account and provisioners. ' +
      'The list is empty if the account does not exist. A token needs the scope `apiKey:list`. ' +
      LIST_VERSIONS,
    query: API_KEY_LIST_PARAMETERS,
    success: KEYS_RESPONSE,
    examples: {
      emitter: {
        summary: 'An account whose runtime has a key, since version 2026-04-28',
        parameters: { accountId: 'globex', 'Svc-Version': '2026-04-28', limit: 50 },
        response: {
          data: [{ id: KEY_ID, clientId: 'runtime', account: 'globex', role: 'emitter', createdAt, revoked: false }],
          meta: LAST_PAGE,
        },
      },
    },
    errors: API_ERRORS,
  },
  {
    ...COMMON,
    method: 'get',
    path: KEYS,
    operationId: 'listApiKeys',
    summary: 'List the API keys of a service account',
    description:
      'The keys of a service account, including revoked and expired keys. For admins of its account, and for provisioners, who must set ' +
      'the parameter `account`. The response never contains the secrets of keys. A token needs the scope `apiKey:list`. ' +
      `${LIST_VERSIONS}\n\n` +
      'A service account is a name within an account. It exists as long as it has a key; otherwise the response is a 404.',
    query: SERVICE_ACCOUNT_KEY_LIST_PARAMETERS,
    success: KEYS_RESPONSE,
    examples: {
      page: {
        summary: 'A page, since version 2026-04-28',
        parameters: { clientId: CLIENT_ID, 'Svc-Version': '2026-04-28', limit: 50 },
        response: {
          data: [{ ...KEY, lastUsedAt: '2025-11-15T11:00:00.000Z', revoked: false }],
          meta: LAST_PAGE,
        },
      },
    },
  },
  {
    ...COMMON,
    method: 'post',
    path: KEYS,
    operationId: 'createApiKey',
    summary: 'Create an API key',
    description:
      'Creates a key of a service account. The first key creates the service account. For admins of the account and provisioners. **Only ' +
      'this response contains the secret of the key.** A token needs the scope `apiKey:write`.\n\n' +
      'An account has at most 1,000 keys. A further key replaces the oldest revoked or expired key. If all keys are valid, the response ' +
      'is a 409 `too_many_api_keys`.',
    body: ['NewApiKey'],
    success: { description: 'The key was created.', schemas: ['CreatedApiKey'] },
    examples: {
      untilAutumn: {
        summary: 'A key for reports that expires after a year',
        parameters: { clientId: 'reports' },
        body: { role: 'member', expiresAt: '2026-11-15T00:00:00Z' },
        response: { ...KEY, clientId: 'reports', revoked: false, key: `mlk_${KEY_ID}_${'0123456789abcdef'.repeat(4)}` },
      },
    },
    errors: [...API_ERRORS, 'Conflict'],
  },
  {
    ...COMMON,
    method: 'delete',
    path: `${KEYS}/{apiKeyId}`,
    operationId: 'revokeApiKey',
    summary: 'Revoke an API key',
    description:
      'Revokes a key of a service account, with immediate effect. For admins of the account, provisioners, and the key itself. Revoking ' +
      'again is not an error. A token needs the scope `apiKey:write`.',
    success: { description: 'The key is revoked. The response has no body.', schemas: [] },
    examples: {
      revoke: {
        summary: 'A key of a service account',
        parameters: { clientId: CLIENT_ID, apiKeyId: KEY_ID },
      },
    },
  },
];
