import { expect, it } from '@jest/globals';
import { type AccountClaims, claimPath, DEFAULT_ACCOUNT_CLAIMS, readMemberships } from './account-claims.js';

type Claims = Readonly<Record<string, unknown>>;
interface Settings {
  readonly path?: string;
  readonly names?: string;
  readonly adminRoles?: AccountClaims['adminRoles'];
}

const read = (claims: Claims, { path = 'accounts', names, adminRoles }: Settings = {}) =>
  readMemberships(claims, {
    ...{ accounts: claimPath(path) ?? [], adminRoles, platformRoles: claimPath('platform.roles') },
    names: names === undefined ? undefined : claimPath(names),
  });

const [ADMIN, TWO] = [{ acme: 'admin' }, { acme: 'admin', globex: 'member' }];
const ENTRIES = [
  { id: 'acme', role: 'admin', name: 'ACME Corp.' },
  { id: 'globex', role: 'member' },
];
const URL_CLAIM = 'https://platform.example.com/accounts';
const PLATFORM = { acme: 'billing owner', globex: 'viewer', initech: 'admin', umbrella: 'Billing owner' };
const ADMIN_ROLES = { adminRoles: ['admin', 'billing owner'] };

it.each<[what: string, claims: Claims, roles: object, settings?: Settings]>([
  ['an object', { accounts: TWO }, TWO],
  ['a list of objects with other members', { accounts: ENTRIES }, TWO],
  ['a list of ids, each with the role member', { accounts: ['acme', 'globex'] }, { acme: 'member', globex: 'member' }],
  ['an empty list', { accounts: [] }, {}],
  ['a claim of another name', { orgs: ADMIN, accounts: { globex: 'admin' } }, ADMIN, { path: 'orgs' }],
  ['a claim in an object', { app: { billing: { accounts: TWO } } }, TWO, { path: 'app.billing.accounts' }],
  ['a claim that is a URL', { [URL_CLAIM]: TWO }, TWO, { path: URL_CLAIM }],
  ['missing', { app: {} }, {}, { path: 'app.accounts' }],
  ['missing, where every object has a member of the name', {}, {}, { path: 'constructor.prototype' }],
  ['an object with an unknown role, which gives no access', { accounts: { ...ADMIN, globex: 'owner' } }, ADMIN],
  ['roles of the platform', { accounts: PLATFORM }, { ...TWO, initech: 'admin', umbrella: 'member' }, ADMIN_ROLES],
])('the accounts of a token may be %s', (...[, claims, roles, settings]) => {
  expect(Object.fromEntries(read(claims, settings).roles)).toEqual(roles);
});

it.each([
  ['an object', 'names', { accounts: TWO, names: { acme: 'ACME Corp.', other: 'Other' } }],
  ['in the list of accounts', 'accounts', { accounts: ENTRIES }],
])('the names of accounts may be %s', (_what, names, claims) => {
  const { accountNames } = read(claims, { names });
  expect([accountNames.get('acme'), accountNames.get('globex')]).toEqual(['ACME Corp.', undefined]);
  expect(read(claims).accountNames).toEqual(new Map());
});

it.each<[what: string, claims: Claims, roles: string[]]>([
  ['one', { platform: { roles: 'provisioner' } }, ['provisioner']],
  [
    'a list, of which those of other services are ignored',
    { platform: { roles: ['owner', 'emitter', 'operator'] } },
    ['operator', 'emitter'],
  ],
  ['a role of one account, which is none of the platform', { platform: { roles: ['admin', 'member'] } }, []],
  ['missing', { roles: ['operator'] }, []],
])('the roles of a token for all accounts may be %s', (_what, claims, roles) => {
  expect([...read(claims).platformRoles]).toEqual(roles);
  expect(readMemberships(claims, { ...DEFAULT_ACCOUNT_CLAIMS }).platformRoles).toEqual(new Set());
});

const ONE_OF_ACCOUNTS =
  'app.accounts must be an object of account ids and roles, a list of objects with id and role, or a list of ids; all values must be strings.';
const ONE_OF_NAMES =
  'names must be an object of account ids and names, or a list of objects with id and name; all values must be strings.';

it.each<[claims: Claims, problem: string]>([
  ...[
    ...['acme', null, 7, { acme: 1 }, { acme: '' }, { '': 'admin' }, { acme: ['admin'] }, ['a\u0000b']],
    ...[['acme', { id: 'globex', role: 'admin' }], [{ id: 'acme' }], [{ id: 7, role: 'admin' }], [['acme', 'admin']]],
  ].map((accounts): [Claims, string] => [{ app: { accounts } }, ONE_OF_ACCOUNTS]),
  [{ app: { accounts: [...ENTRIES, ...ENTRIES] } }, 'app.accounts names the account "acme" twice.'],
  [{ app: ['accounts'] }, 'app must be an object.'],
  [{ app: null }, 'app must be an object.'],
  [{ app: { accounts: TWO }, names: ['ACME'] }, ONE_OF_NAMES],
  ...[null, 7, { operator: true }, ['operator', 7]].map((roles): [Claims, string] => [
    { platform: { roles } },
    'platform.roles must be a role or a list of roles.',
  ]),
])('a token with the claims %j is malformed: %s', (claims, problem) => {
  expect(() => read(claims, { path: 'app.accounts', names: 'names' })).toThrow(
    expect.objectContaining({ name: 'MalformedClaim', message: `The token's claim ${problem}` }),
  );
});
