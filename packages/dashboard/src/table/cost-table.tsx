/** The table of groups: what each costs, its share, its usage and price where it has one unit, and how it changed. */
import { changeFrom, counted, type DecimalText, decimalText, shareText, sumDecimals } from '@meterline/catalog/plain';
import type { BillingDimensionResponse, MetricsResponse } from '@meterline/client';
import type { ReactNode } from 'react';
import type { ShownAccount } from '../account/use-account-view.js';
import { seriesColor } from '../breakdown/breakdown.js';
import { amountText, DIMENSION_LABEL, localized, shareOf, unitPriceText } from '../breakdown/texts.js';
import { useBillingDimensions } from '../metrics/queries.js';
import { changeView } from '../view/address.js';
import type { SortColumn, View } from '../view/view.js';
import { Amount, ChangeText, GroupCells } from './cells.js';
import { type Row, roomOf } from './rows.js';

interface CostTableProps {
  readonly shown: ShownAccount;
  readonly first: MetricsResponse;
  /** Opens the events behind a row; undefined where the caller may not see them. */
  readonly onExplain: ((row: Row) => void) | undefined;
}

/** The totals of all groups on all pages. The unit is undefined where they have several. */
type Totals = Pick<Row, 'cost' | 'usage' | 'unit' | 'previousCost'>;

interface Column {
  readonly label: string;
  /** Undefined: the table cannot be sorted by it. */
  readonly sort?: SortColumn;
  readonly className: string;
  readonly cell: (of: Row | Totals) => ReactNode;
  /** The cell for what a search found. */
  readonly found?: ReactNode;
}

export function CostTable({ shown, first: { summary }, onExplain }: CostTableProps) {
  const { view, breakdown, from, usageUnit: unit, previousTotals } = shown;
  const rows = shown.rows.slice(from, from + view.pageSize);
  const usage = unit && summary.totalUsage;
  const totals = { cost: summary.totalCost, usage, unit, previousCost: previousTotals?.cost };
  const isSearch = view.search.trim() !== '' && rows.length > 0;
  const found = isSearch ? sumDecimals(shown.rows.map(({ cost }) => cost)) : undefined;
  const { data: dimensions } = useBillingDimensions(shown.account, view.groupBy.includes('billing_dimension'));
  const columns = columnsOf({ shown, rows, totals, found, dimensions, onExplain });
  /** The one in the chart; undefined if the group has none of its own there. */
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
            <GroupCells {...{ row, view }} color={colorOf(row.key)} seesWorkspaces={shown.seesWorkspaces} />
            {cells(({ cell }) => cell(row))}
          </tr>
        ))}
      </tbody>
      <tfoot>
        {found && (
          <tr>
            <th scope="row">{localized(counted(shown.rows.length, 'group'))} found</th>
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

interface ColumnsSource extends Pick<CostTableProps, 'shown' | 'onExplain'> {
  /** On this page. */
  readonly rows: readonly Row[];
  readonly totals: Totals;
  /** What all that a search found cost. */
  readonly found: DecimalText | undefined;
  /** Undefined where the prices in force are not known. */
  readonly dimensions: readonly BillingDimensionResponse[] | undefined;
}

function columnsOf({ shown, rows, totals, found, dimensions, onExplain }: ColumnsSource): Column[] {
  const { view, compared, isComparing } = shown;
  const { isExact } = view;
  const costRoom = roomOf([...rows.map(({ cost }) => cost), totals.cost], undefined);
  const money = (amount: DecimalText, room = costRoom) => <Amount {...{ amount, room, isExact }} unit={undefined} />;
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
    const room = roomOf([...rows.map(({ usage }) => usage), totals.usage], totals.unit ?? rows[0]?.unit);
    columns.push(
      {
        label: 'Usage',
        sort: 'usage',
        className: 'number',
        cell: ({ usage, unit }) => (usage && unit ? <Amount {...{ unit, room, isExact }} amount={usage} /> : '–'),
      },
      {
        // Quantity and price: their product is the cost.
        label: 'Average price',
        className: 'number price-column',
        cell: (of) => averagePrice(of, dimensions),
      },
    );
  }
  if (!compared) return columns;
  const unknown = isComparing ? '…' : 'not compared';
  return [
    ...columns,
    {
      label: compared.distance,
      className: 'number',
      cell: ({ previousCost }) => (previousCost ? money(previousCost, roomOf([previousCost], undefined)) : unknown),
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

/** With the price in force now as a tooltip: it may differ from the average of the period. */
function averagePrice(of: Row | Totals, dimensions: ColumnsSource['dimensions'] = []): ReactNode {
  const { cost, usage, unit } = of;
  if (!usage || !unit) return '–';
  const dimension = 'entry' in of ? of.entry.billingDimension : undefined;
  const price = dimensions.find(({ billingDimension }) => billingDimension === dimension)?.price;
  const current = price && unitPriceText(decimalText(price.amount), decimalText(price.per), unit);
  return <span title={current && `In force now: ${current}`}>{unitPriceText(cost, usage, unit) ?? '–'}</span>;
}

/** Why does it say that? */
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
  // The first click sorts names from A, and amounts from the largest.
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
