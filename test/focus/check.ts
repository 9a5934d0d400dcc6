/**
 * Checks a data set against the rules of FOCUS 1.2. Source: FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec at tag v1.2,
 * specification/columns, "Content constraints", and the "Requirements" of columns and attributes.
 */
import { decimalText, sumDecimals } from '@meterline/catalog';

interface SpecifiedColumn {
  readonly name: string;
  readonly level: 'Mandatory' | 'Conditional' | 'Recommended';
  readonly type: 'String' | 'Decimal' | 'Date/Time' | 'JSON';
  readonly nulls: boolean;
  readonly allowed?: readonly string[] | undefined;
}

const SERVICE_CATEGORIES = [
  ...['AI and Machine Learning', 'Analytics', 'Business Applications', 'Compute', 'Databases', 'Developer Tools'],
  ...['Multicloud', 'Identity', 'Integration', 'Internet of Things', 'Management and Governance', 'Media'],
  ...['Migration', 'Mobile', 'Networking', 'Security', 'Storage', 'Web', 'Other'],
];

type Row = readonly [
  name: string,
  level: SpecifiedColumn['level'],
  type: SpecifiedColumn['type'],
  nulls: boolean,
  allowed?: readonly string[],
];

const ROWS: readonly Row[] = [
  ['BilledCost', 'Mandatory', 'Decimal', false],
  ['BillingAccountId', 'Mandatory', 'String', false],
  ['BillingAccountName', 'Mandatory', 'String', true],
  ['BillingCurrency', 'Mandatory', 'String', false, ['USD']],
  ['BillingPeriodEnd', 'Mandatory', 'Date/Time', false],
  ['BillingPeriodStart', 'Mandatory', 'Date/Time', false],
  ['ChargeCategory', 'Mandatory', 'String', false, ['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment']],
  ['ChargeClass', 'Mandatory', 'String', true, ['Correction']],
  ['ChargeDescription', 'Mandatory', 'String', true],
  ['ChargeFrequency', 'Recommended', 'String', false, ['One-Time', 'Recurring', 'Usage-Based']],
  ['ChargePeriodEnd', 'Mandatory', 'Date/Time', false],
  ['ChargePeriodStart', 'Mandatory', 'Date/Time', false],
  ['ConsumedQuantity', 'Conditional', 'Decimal', true],
  ['ConsumedUnit', 'Conditional', 'String', true],
  ['ContractedCost', 'Mandatory', 'Decimal', false],
  ['EffectiveCost', 'Mandatory', 'Decimal', false],
  ['InvoiceId', 'Recommended', 'String', true],
  ['InvoiceIssuerName', 'Mandatory', 'String', false],
  ['ListCost', 'Mandatory', 'Decimal', false],
  ['PricingQuantity', 'Mandatory', 'Decimal', true],
  ['PricingUnit', 'Mandatory', 'String', true],
  ['ProviderName', 'Mandatory', 'String', false],
  ['PublisherName', 'Mandatory', 'String', false],
  ['ResourceId', 'Conditional', 'String', true],
  ['ResourceName', 'Conditional', 'String', true],
  ['ResourceType', 'Conditional', 'String', true],
  ['ServiceCategory', 'Mandatory', 'String', false, SERVICE_CATEGORIES],
  ['ServiceName', 'Mandatory', 'String', false],
  ['ServiceSubcategory', 'Recommended', 'String', false],
  ['SkuId', 'Conditional', 'String', true],
  ['SkuMeter', 'Conditional', 'String', true],
  ['SkuPriceDetails', 'Conditional', 'JSON', true],
  ['SkuPriceId', 'Conditional', 'String', true],
  ['SubAccountId', 'Conditional', 'String', true],
  ['SubAccountName', 'Conditional', 'String', true],
];

/** The columns of the specification whose conditions hold here: level, type, nullability, allowed values. Decision 0029 has the others. */
export const SPECIFICATION = ROWS.map(
  ([name, level, type, nulls, allowed]): SpecifiedColumn => ({ name, level, type, nulls, allowed }),
);

/** The subcategories of the categories that the export uses. */
const SUBCATEGORIES: Readonly<Record<string, readonly string[]>> = {
  'AI and Machine Learning': [
    ...['AI Platforms', 'Bots', 'Generative AI', 'Machine Learning', 'Natural Language Processing'],
    'Other (AI and Machine Learning)',
  ],
  Compute: [
    ...['Containers', 'End User Computing', 'Quantum Compute', 'Serverless Compute', 'Virtual Machines'],
    'Other (Compute)',
  ],
  Networking: [
    ...['Application Networking', 'Content Delivery', 'Network Connectivity', 'Network Infrastructure'],
    ...['Network Routing', 'Network Security', 'Other (Networking)'],
  ],
  Storage: [
    ...['Backup Storage', 'Block Storage', 'File Storage', 'Object Storage', 'Storage Platforms', 'Other (Storage)'],
  ],
};

/** A row by column; null is a null. */
export type FocusRow = Readonly<Record<string, string | null>>;

export interface DataSet {
  readonly columns: readonly string[];
  readonly rows: readonly FocusRow[];
}

/** Reads RFC 4180 with CRLF; a cell that is empty and not quoted is a null. @throws Error for anything else */
export function parseCsv(text: string): DataSet {
  const lines: (string | null)[][] = [[]];
  let at = 0;
  while (at < text.length) {
    const [all = '', quoted, plain = '', end = ''] =
      /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(text.slice(at)) ?? [];
    if (all === '') throw new Error(`not CSV at ${at}: ${text.slice(at, at + 40)}`);
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? (plain === '' ? null : plain));
    if (end === '\r\n') lines.push([]);
    at += all.length;
  }
  if (lines.pop()?.length !== 0) throw new Error('the last line has no end');
  const [heading = [], ...rows] = lines;
  const columns = heading.map((name) => name ?? '');
  return {
    columns,
    rows: rows.map((cells) => {
      if (cells.length !== columns.length) throw new Error(`${cells.length} cells under ${columns.length} columns`);
      return Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? null]));
    }),
  };
}

/** Every rule that the data set breaks, in words. */
export function faultsOf({ columns, rows }: DataSet): string[] {
  const faults = headingFaults(columns);
  const present = SPECIFICATION.filter(({ name }) => columns.includes(name));
  for (const [index, row] of rows.entries()) {
    const cells = present.flatMap((column) => cellFaults(column, row[column.name] ?? null));
    faults.push(...[...cells, ...rowFaults(row)].map((fault) => `row ${index + 1}: ${fault}`));
  }
  return [...faults, ...setFaults(rows)];
}

/** Column Handling, and the presence of columns. */
function headingFaults(columns: readonly string[]): string[] {
  const names = SPECIFICATION.map(({ name }) => name);
  const own = columns.filter((name) => names.includes(name));
  const custom = columns.filter((name) => !names.includes(name));
  const missing = SPECIFICATION.filter(({ name }) => !columns.includes(name));
  return [
    ...missing.map(({ name, level }) => `${name} (${level}) is missing`),
    ...custom
      .filter((name) => !/^x_[A-Z][A-Za-z0-9]*$/.test(name))
      .map((name) => `${name} has no rules here; a custom column begins with x_`),
    ...(columns.join() === [...own, ...custom].join() ? [] : ['custom columns stand between those of FOCUS']),
    ...(own.join() === names.filter((name) => own.includes(name)).join() ? [] : ['the columns are in another order']),
    ...(new Set(columns).size === columns.length ? [] : ['a column is there twice']),
  ];
}

const FORMATS: Readonly<Record<SpecifiedColumn['type'], RegExp>> = {
  // Null Handling: no empty text and no placeholder in place of null.
  String: /^(?!\s*$)(?!(?:null|n\/a|not applicable|none)$)/iu,
  Decimal: /^-?\d+(\.\d+)?$/,
  'Date/Time': /^\d{4}-(0\d|1[0-2])-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ$/,
  JSON: /^\{.*\}$/s,
};

function cellFaults({ name, type, nulls, allowed }: SpecifiedColumn, value: string | null): string[] {
  if (value === null) return nulls ? [] : [`${name} is null`];
  if (!FORMATS[type].test(value)) return [`${name} is no ${type}: ${value}`];
  return allowed && !allowed.includes(value) ? [`${name} has a value that is not allowed: ${value}`] : [];
}

/** What columns of one row say about each other. */
function rowFaults(row: FocusRow): string[] {
  const is = (name: string) => row[name] !== null && row[name] !== undefined;
  const rules: readonly (readonly [boolean, string])[] = [
    [
      row.ChargeClass === 'Correction' || row.ChargeCategory !== 'Usage' || is('PricingQuantity'),
      'usage without PricingQuantity',
    ],
    [is('PricingUnit') === is('PricingQuantity'), 'PricingUnit without PricingQuantity, or the reverse'],
    [row.ChargeCategory === 'Usage' || !is('ConsumedQuantity'), 'ConsumedQuantity of what is no usage'],
    [row.ChargeCategory !== 'Usage' || is('ConsumedQuantity'), 'usage without ConsumedQuantity'],
    [is('ConsumedUnit') === is('ConsumedQuantity'), 'ConsumedUnit without ConsumedQuantity, or the reverse'],
    [row.ChargeCategory !== 'Usage' || (is('SkuId') && is('SkuPriceId')), 'usage without SkuId or SkuPriceId'],
    [is('SkuId') || !is('SkuMeter'), 'SkuMeter without SkuId'],
    [is('SkuPriceId') || !is('SkuPriceDetails'), 'SkuPriceDetails without SkuPriceId'],
    [
      is('ResourceId') || !(is('ResourceName') || is('ResourceType')),
      'ResourceName or ResourceType without ResourceId',
    ],
    [!is('ResourceId') || is('ResourceType'), 'ResourceId without ResourceType'],
    [is('SubAccountId') === is('SubAccountName'), 'SubAccountId without SubAccountName, or the reverse'],
    [row.ChargeCategory !== 'Purchase' || row.ChargeFrequency !== 'Usage-Based', 'a purchase that is Usage-Based'],
    [
      SUBCATEGORIES[row.ServiceCategory ?? '']?.includes(row.ServiceSubcategory ?? '') ?? false,
      'a foreign ServiceSubcategory',
    ],
    [
      textOf(row, 'ChargePeriodStart') < textOf(row, 'ChargePeriodEnd'),
      'a ChargePeriod that does not end after its start',
    ],
    [textOf(row, 'BillingPeriodStart') <= textOf(row, 'ChargePeriodStart'), 'a charge before its BillingPeriod'],
    [textOf(row, 'ChargePeriodEnd') <= textOf(row, 'BillingPeriodEnd'), 'a charge after its BillingPeriod'],
    // Without a unit price, a cost that is derived from no other charge is the billed one.
    [row.ListCost === row.BilledCost, 'ListCost that is not BilledCost'],
    [row.ContractedCost === row.BilledCost, 'ContractedCost that is not BilledCost'],
    [unitOf(row, 'PricingUnit') && unitOf(row, 'ConsumedUnit'), 'a unit that is not in the Unit Format'],
    // Nothing is bought in advance, so nothing is amortized.
    [row.EffectiveCost === row.BilledCost, 'EffectiveCost that is not BilledCost'],
  ];
  return rules.filter(([holds]) => !holds).map(([, fault]) => fault);
}

const UNITS = /^(\d+ )?(GB|Count|Units|Requests|Hours|Seconds)(-(Seconds|Hours|Days|Months))?$/;

function unitOf(row: FocusRow, name: string): boolean {
  return row[name] === null || UNITS.test(textOf(row, name));
}

/** What rows say about each other. */
function setFaults(rows: readonly FocusRow[]): string[] {
  const one: readonly (readonly [string, string])[] = [
    ['ServiceName', 'ServiceCategory'],
    ['ServiceName', 'ServiceSubcategory'],
    ['SkuPriceId', 'SkuId'],
    ['SkuId', 'SkuMeter'],
    ['SkuId', 'PricingUnit'],
    ['ResourceId', 'ResourceName'],
    ['ResourceId', 'ResourceType'],
    ['BillingAccountId', 'BillingAccountName'],
    ['SubAccountId', 'SubAccountName'],
  ];
  const faults = one.flatMap(([of, value]) => {
    const found = new Map<string, Set<string>>();
    for (const row of rows) {
      const key = textOf(row, of);
      found.set(key, (found.get(key) ?? new Set()).add(textOf(row, value)));
    }
    return [...found].filter(([, values]) => values.size > 1).map(([key]) => `${of} ${key} has several ${value}`);
  });
  const places = rows.map((row) => `${row.ChargePeriodStart} ${row.ResourceId} ${row.SkuId}`);
  return new Set(places).size === places.length ? faults : [...faults, 'a resource, SKU and period is there twice'];
}

function textOf(row: FocusRow, name: string): string {
  return row[name] ?? '';
}

/** The sum of a column of decimals, exact. */
export function sumOf(rows: readonly FocusRow[], column: string): string {
  return sumDecimals(rows.map((row) => decimalText(row[column] ?? '')));
}
