/** The operations about accounts and API keys, with examples that the contract tests send and compare. */
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
  description: 'Accepted and ignored, as the header `X-Svc-Workspace` is: accounts and keys belong to no workspace.',
};

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

/** What every operation here has. */
const shared = { tag: 'Access', otherParameters: [IGNORED_WORKSPACE], errors: [...API_ERRORS, 'NotFound'] } as const;
const KEYS = '/v0/service_accounts/{clientId}/api_keys';

export const ACCESS_OPERATIONS: readonly OperationSketch[] = [
  {
    ...shared,
    method: 'get',
    path: '/v0/accounts',
    operationId: 'listAccounts',
    summary: 'The caller’s accounts',
    description:
      'The accounts that the key or token belongs to, each with the caller’s role in it; for operators and provisioners all that ' +
      'have a name, have had a key or have usage (new names appear within five seconds, new usage within a minute). An object with pages since version ' +
      '2026-04-28, and takes parameters since then; before, an array of everything.',
    query: ACCOUNT_LIST_PARAMETERS,
    success: { description: 'The accounts.', schemas: ['AccountPage', 'AccountArray'] },
    examples: {
      page: {
        summary: 'A page, since version 2026-04-28',
        parameters: { 'Svc-Version': '2026-04-28', sort: 'name:asc', limit: 50 },
        response: { data: [ACCOUNT], meta: LAST_PAGE },
      },
      array: {
        summary: 'Everything at once, at version 2026-04-16',
        parameters: { 'Svc-Version': '2026-04-16' },
        response: [ACCOUNT],
      },
    },
    errors: API_ERRORS,
  },
  {
    ...shared,
    isExtension: true,
    method: 'put',
    path: '/v0/accounts/{accountId}',
    operationId: 'nameAccount',
    summary: 'Name an account',
    description:
      'Registers the account, if it is new, and gives it a name: for provisioners. Again with the same name changes nothing. An account ' +
      'needs no registration to have usage; one that nobody has named is called by its id.',
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
    ...shared,
    isExtension: true,
    method: 'get',
    path: '/v0/accounts/{accountId}/api_keys',
    operationId: 'listAccountApiKeys',
    summary: 'The API keys of an account',
    description:
      'The keys of all service accounts of an account, revoked and expired ones included, for an admin of the account and for ' +
      'provisioners. An account that does not exist has none. Lists, pages and scope are as for the keys of a service account.',
    query: API_KEY_LIST_PARAMETERS,
    success: { description: 'The keys.', schemas: ['ApiKeyPage', 'ApiKeyArray'] },
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
    ...shared,
    method: 'get',
    path: KEYS,
    operationId: 'listApiKeys',
    summary: 'The API keys of a service account',
    description:
      'The keys of a service account, revoked and expired ones included, for an admin of the account that they belong to, and for a ' +
      'provisioner, who names the `account`. Nobody sees a key itself again. An object with pages since version 2026-04-28, and takes parameters since then; ' +
      'before, an array of everything. A token needs the scope `apiKey:list`.\n\n' +
      'A service account is a name within an account, and is there as long as it has a key: one without is a 404.',
    query: SERVICE_ACCOUNT_KEY_LIST_PARAMETERS,
    success: { description: 'The keys.', schemas: ['ApiKeyPage', 'ApiKeyArray'] },
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
    ...shared,
    method: 'post',
    path: KEYS,
    operationId: 'createApiKey',
    summary: 'Create an API key',
    description:
      'Creates a key of a service account, and with its first key the service account, for an admin of the account that the ' +
      'key is of, or a provisioner. **The key itself is in this response alone.** A token needs the scope `apiKey:write`.\n\n' +
      'An account has at most 1,000 keys. Beyond that the oldest key that is revoked or has expired is forgotten, with its ' +
      'id; while none is, the response is a 409 `too_many_api_keys`.',
    body: ['NewApiKey'],
    success: { description: 'The key was created.', schemas: ['CreatedApiKey'] },
    examples: {
      untilAutumn: {
        summary: 'A key for reports, for a year',
        parameters: { clientId: 'reports' },
        body: { role: 'member', expiresAt: '2026-11-15T00:00:00Z' },
        response: { ...KEY, clientId: 'reports', revoked: false, key: `mlk_${KEY_ID}_${'0123456789abcdef'.repeat(4)}` },
      },
    },
    errors: [...API_ERRORS, 'Conflict'],
  },
  {
    ...shared,
    method: 'delete',
    path: `${KEYS}/{apiKeyId}`,
    operationId: 'revokeApiKey',
    summary: 'Revoke an API key',
    description:
      'Revokes a key of a service account, at once and everywhere, for an admin of the account that the key belongs to, ' +
      'for a provisioner, and for the key itself. Again is no error. A token needs the scope `apiKey:write`.',
    success: { description: 'The key is revoked. The response has no body.', schemas: [] },
    examples: {
      revoke: {
        summary: 'A key of a service account',
        parameters: { clientId: CLIENT_ID, apiKeyId: KEY_ID },
      },
    },
  },
];
