import { expect, it } from '@jest/globals';
import { type AccountClaims, claimPath, DEFAULT_ACCOUNT_CLAIMS, readMemberships } from './account-claims.js';

type Claims = Readonly<Record<string, unknown>>;

const read = (claims: Claims, { path = 'accounts', names, adminRoles }: Settings = {}) =>
  readMemberships(claims, {
    ...{ accounts: claimPath(path) ?? [], adminRoles },
    names: names === undefined ? undefined : claimPath(names),
  });
interface Settings {
  readonly path?: string;
  readonly names?: string;
  readonly adminRoles?: AccountClaims['adminRoles'];
}

const TWO = { acme: 'admin', globex: 'member' };
const URL_CLAIM = 'https://platform.example.com/accounts';

it.each<[what: string, claims: Claims, roles: Readonly<Record<string, string>>, settings?: Settings]>([
  ['an object', { accounts: TWO }, TWO],
  [
    'a list of objects with other members',
    {
      accounts: [
        { id: 'acme', role: 'admin', plan: 'pro' },
        { id: 'globex', role: 'member' },
      ],
    },
    TWO,
  ],
  ['a list of ids, each with the role member', { accounts: ['acme', 'globex'] }, { acme: 'member', globex: 'member' }],
  ['an empty list', { accounts: [] }, {}],
  [
    'a claim of another name',
    { orgs: { acme: 'admin' }, accounts: { globex: 'admin' } },
    { acme: 'admin' },
    { path: 'orgs' },
  ],
  ['a claim in an object', { app: { billing: { accounts: TWO } } }, TWO, { path: 'app.billing.accounts' }],
  ['a claim that is a URL', { [URL_CLAIM]: TWO }, TWO, { path: URL_CLAIM }],
  ['missing', { app: {} }, {}, { path: 'app.accounts' }],
  ['missing, where every object has a member of the name', {}, {}, { path: 'constructor.prototype' }],
  [
    'an object with an unknown role, which gives no access',
    { accounts: { acme: 'owner', globex: 'member' } },
    { globex: 'member' },
  ],
  [
    'roles of the platform, some of which are admins',
    { accounts: { acme: 'billing owner', globex: 'viewer', initech: 'admin', umbrella: 'Billing owner' } },
    { acme: 'admin', globex: 'member', initech: 'admin', umbrella: 'member' },
    { adminRoles: ['admin', 'billing owner'] },
  ],
])('the accounts of a token may be %s', (...[, claims, roles, settings]) => {
  expect(Object.fromEntries(read(claims, settings).roles)).toEqual(roles);
});

it.each<[what: string, claims: Claims, names: string]>([
  ['an object', { accounts: TWO, names: { acme: 'ACME Corp.', other: 'Other' } }, 'names'],
  [
    'in the list of accounts',
    {
      accounts: [
        { id: 'acme', role: 'admin', name: 'ACME Corp.' },
        { id: 'globex', role: 'x' },
      ],
    },
    'accounts',
  ],
])('the names of accounts may be %s', (_what, claims, names) => {
  expect(read(claims, { names }).accountNames.get('acme')).toBe('ACME Corp.');
  expect(read(claims, { names }).accountNames.get('globex')).toBeUndefined();
  expect(readMemberships(claims, DEFAULT_ACCOUNT_CLAIMS).accountNames).toEqual(new Map());
});

const FORMS =
  'app.accounts must be an object of account ids and roles, a list of objects with id and role, or a list of ids, all of them texts.';

it.each<[claims: Claims, problem: string]>([
  ...[
    ...['acme', null, 7, { acme: 1 }, { acme: '' }, { '': 'admin' }, { acme: ['admin'] }, ['a\u0000b']],
    ...[['acme', { id: 'globex', role: 'admin' }], [{ id: 'acme' }], [{ id: 7, role: 'admin' }], [['acme', 'admin']]],
  ].map((accounts): [Claims, string] => [{ app: { accounts } }, FORMS]),
  [
    {
      app: {
        accounts: [
          { id: 'acme', role: 'member' },
          { id: 'acme', role: 'admin' },
        ],
      },
    },
    'app.accounts names the account "acme" twice.',
  ],
  [{ app: ['accounts'] }, 'app must be an object.'],
  [{ app: null }, 'app must be an object.'],
  [
    { app: { accounts: TWO }, names: ['ACME'] },
    'names must be an object of account ids and names, or a list of objects with id and name, all of them texts.',
  ],
])('a token with the claims %j is malformed: %s', (claims, problem) => {
  expect(() => read(claims, { path: 'app.accounts', names: 'names' })).toThrow(
    expect.objectContaining({ name: 'MalformedClaim', message: `The token's claim ${problem}` }),
  );
});
