/** Renders the table of groups: the cost, share, usage, average price and change of each group. */
import {
  changeFrom,
  counted,
  type DecimalText,
  decimalText,
  type SortColumn,
  shareText,
  sumDecimals,
} from '@meterline/catalog/plain';
import type { BillingDimensionResponse, MetricsResponse } from '@meterline/client';
import type { ReactNode } from 'react';
import type { Comparison } from '../account/use-comparison.js';
import type { Costs } from '../account/use-costs.js';
import { seriesColor } from '../breakdown/breakdown.js';
import { localized } from '../format/locale.js';
import { amountText, DIMENSION_LABEL, shareOf, unitPriceText } from '../format/texts.js';
import { useBillingDimensions } from '../metrics/queries.js';
import { changeView } from '../view/address.js';
import type { View } from '../view/view.js';
import { Amount, ChangeText, GroupCells } from './cells.js';
import type { Row } from './rows.js';
import type { Table } from './use-table.js';

interface CostTableProps {
  readonly costs: Costs;
  readonly comparison: Comparison;
  readonly table: Table;
  readonly first: MetricsResponse;
  /** A function that opens the events behind a row, or undefined if the user may not see the events. */
  readonly onExplain: ((row: Row) => void) | undefined;
}

/** The totals of all groups on all pages. `unit` is undefined if the groups have several units. */
type Totals = Pick<Row, 'cost' | 'usage' | 'unit' | 'previousCost'>;

interface Column {
  readonly label: string;
  /** The sort order of this column, or undefined if the table cannot be sorted by it. */
  readonly sort?: SortColumn;
  readonly className: string;
  readonly cell: (of: Row | Totals) => ReactNode;
  /** The total of the rows that a search found. */
  readonly found?: ReactNode;
}

export function CostTable({ costs, comparison, table, first: { summary }, onExplain }: CostTableProps) {
  const { account, view, breakdown, usageUnit: unit } = costs;
  const { from, rows: allRows } = table;
  const rows = allRows.slice(from, from + view.pageSize);
  const usage = unit && summary.totalUsage;
  const totals = { cost: summary.totalCost, usage, unit, previousCost: comparison.totals?.cost };
  const isSearch = view.search.trim() !== '' && rows.length > 0;
  const found = isSearch ? sumDecimals(allRows.map(({ cost }) => cost)) : undefined;
  const { data: dimensions } = useBillingDimensions(account, view.groupBy.includes('billing_dimension'));
  const columns = columnsOf({ costs, comparison, table, rows, totals, found, dimensions, onExplain });
  /** Returns the color of the group in the chart, or undefined if the chart shows it as one of the other groups. */
  const colorOf = (key: string) => {
    const rank = breakdown?.series.findIndex((series) => series.key === key) ?? -1;
    return rank === -1 ? undefined : seriesColor({ key }, rank);
  };
  const [name = 'Group', ...others] = view.groupBy.map((dimension) => DIMENSION_LABEL[dimension]);
  const restOfName = others.map((label) => <td key={label} className="group-more" />);
  const cells = (contentOf: (column: Column) => ReactNode) =>
    columns.map((column) => (
      <td key={column.label} className={column.className}>
        {contentOf(column)}
      </td>
    ));
  return (
    <table>
      <thead>
        <tr>
          <Header view={view} label={name} sort="name" className="" />
          {others.map((label) => (
            <Header key={label} view={view} label={label} className="group-more" />
          ))}
          {columns.map((column) => (
            <Header key={column.label} view={view} {...column} />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key}>
            <GroupCells {...{ row, view }} color={colorOf(row.key)} seesWorkspaces={costs.seesWorkspaces} />
            {cells(({ cell }) => cell(row))}
          </tr>
        ))}
      </tbody>
      <tfoot>
        {found && (
          <tr>
            <th scope="row">{localized(counted(allRows.length, 'group'))} found</th>
            {restOfName}
            {cells((column) => column.found)}
          </tr>
        )}
        <tr>
          <th scope="row">Total of all groups</th>
          {restOfName}
          {cells(({ cell }) => cell(totals))}
        </tr>
      </tfoot>
    </table>
  );
}

interface ColumnsSource extends Omit<CostTableProps, 'first'> {
  readonly rows: readonly Row[];
  readonly totals: Totals;
  readonly found: DecimalText | undefined;
  /** The dimensions with their current prices, or undefined if the prices are unknown. */
  readonly dimensions: readonly BillingDimensionResponse[] | undefined;
}

function columnsOf(source: ColumnsSource): Column[] {
  const { costs, comparison, table, rows, totals, found, dimensions, onExplain } = source;
  const { isExact } = costs.view;
  const money = (amount: DecimalText) => <Amount {...{ amount, isExact }} unit={undefined} />;
  const share = (part: DecimalText) => <Share part={part} whole={totals.cost} />;
  const columns: Column[] = [
    {
      label: 'Cost (USD)',
      sort: 'cost',
      className: 'number',
      cell: (of) => (onExplain && 'key' in of ? explainButton(of, onExplain, money(of.cost)) : money(of.cost)),
      found: found && money(found),
    },
    {
      label: 'Share',
      className: 'share-column',
      cell: (of) => 'key' in of && share(of.cost),
      found: found && share(found),
    },
  ];
  if (rows.some(({ usage }) => usage !== undefined)) {
    columns.push(
      {
        label: 'Usage',
        sort: 'usage',
        className: 'number',
        cell: ({ usage, unit }) => (usage && unit ? <Amount {...{ unit, isExact }} amount={usage} /> : '–'),
      },
      {
        label: 'Average price',
        className: 'number price-column',
        cell: (of) => averagePrice(of, dimensions),
      },
    );
  }
  const { compared } = comparison;
  if (!compared) return columns;
  const { isComparing } = table;
  const unknown = isComparing ? '…' : 'not available';
  return [
    ...columns,
    {
      label: compared.distance,
      className: 'number',
      cell: ({ previousCost }) => (previousCost ? money(previousCost) : unknown),
    },
    {
      label: 'Change',
      sort: 'change',
      className: 'number',
      cell: ({ cost, previousCost }) => {
        if (!previousCost) return isComparing ? unknown : '–';
        return <ChangeText change={changeFrom(previousCost, cost)} unit={undefined} isExact={isExact} />;
      },
    },
  ];
}

/** Shows the average price of the period. On hover, shows the current price, because the two may differ. */
function averagePrice(of: Row | Totals, dimensions: ColumnsSource['dimensions'] = []): ReactNode {
  const { cost, usage, unit } = of;
  if (!usage || !unit) return '–';
  const dimension = 'entry' in of ? of.entry.billingDimension : undefined;
  const price = dimensions.find(({ billingDimension }) => billingDimension === dimension)?.price;
  const current = price && unitPriceText(decimalText(price.amount), decimalText(price.per), unit);
  return <span title={current && `Current price: ${current}`}>{unitPriceText(cost, usage, unit) ?? '–'}</span>;
}

function explainButton(row: Row, onExplain: (row: Row) => void, amount: ReactNode) {
  return (
    <button
      type="button"
      className="explain"
      aria-haspopup="dialog"
      aria-label={`${amountText(row.cost, undefined)}: events behind ${row.labels.join(', ')}`}
      onClick={() => onExplain(row)}
    >
      {amount}
    </button>
  );
}

interface HeaderProps extends Pick<Column, 'label' | 'sort' | 'className'> {
  readonly view: View;
}

function Header({ view, label, sort: column, className }: HeaderProps) {
  if (!column) {
    return (
      <th scope="col" className={className}>
        {label}
      </th>
    );
  }
  const isSorted = view.sort.column === column;
  const order = isSorted ? (view.sort.descending ? 'descending' : 'ascending') : 'none';
  // The first click sorts names from A to Z, and amounts from the largest to the smallest.
  const sort = { column, descending: isSorted ? !view.sort.descending : column !== 'name' };
  return (
    <th scope="col" className={className} aria-sort={order}>
      <button type="button" className="sort" data-order={order} onClick={() => changeView({ sort, page: 1 })}>
        {label}
      </button>
    </th>
  );
}

function Share({ part, whole }: { readonly part: DecimalText; readonly whole: DecimalText }) {
  return (
    <span className="share">
      <span className="share-bar" aria-hidden="true">
        <span style={{ width: `${shareOf(part, whole) * 100}%` }} />
      </span>
      <span className="share-text">{localized(shareText(part, whole))}</span>
    </span>
  );
}
