/** The table of groups: what each costs, its share, its usage and price where it has one unit, and how it changed. */
import { changeFrom, type DecimalText, shareText } from '@meterline/catalog';
import type { ReactNode } from 'react';
import { amountText, DIMENSION_LABEL, localized, type Quantity, shareOf, unitPriceText } from '../breakdown/texts.js';
import { navigate } from '../view/address.js';
import type { SortColumn, View } from '../view/view.js';
import { Amount, ChangeText, GroupCells, roomOf } from './cells.js';
import type { Row } from './rows.js';

interface Totals {
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  /** Undefined: the groups are measured in several units. */
  readonly unit: Quantity | undefined;
  readonly previousCost: DecimalText | undefined;
}

export interface CostTableProps {
  readonly view: View;
  readonly rows: readonly Row[];
  /** Of all groups on all pages. */
  readonly totals: Totals;
  /** The sum of those that a search found; undefined: nothing is searched for. */
  readonly found: { readonly label: string; readonly cost: DecimalText } | undefined;
  /** `4 weeks earlier`; undefined: not compared. */
  readonly distance: string | undefined;
  readonly isComparing: boolean;
  readonly seesWorkspaces: boolean;
  /** Opens the events behind a row; undefined where the caller may not see them. */
  readonly onExplain: ((row: Row) => void) | undefined;
  /** The colour that the chart shows a group in; undefined if it has none of its own. */
  readonly colorOf: (key: string) => string | undefined;
}

interface Column {
  readonly label: string;
  /** Undefined: the table cannot be sorted by it. */
  readonly sort?: SortColumn;
  readonly className: string;
  readonly cell: (of: Row | Totals) => ReactNode;
  /** Of what a search found. */
  readonly found?: ReactNode;
}

export function CostTable(props: CostTableProps) {
  const { view, rows, totals, found, seesWorkspaces, colorOf } = props;
  const columns = columnsOf(props);
  const [first = 'Group', ...others] = view.groupBy.map((dimension) => DIMENSION_LABEL[dimension]);
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
          <Header view={view} label={first} sort="name" className="" />
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
            <GroupCells {...{ row, view, seesWorkspaces }} color={colorOf(row.key)} />
            {cells(({ cell }) => cell(row))}
          </tr>
        ))}
      </tbody>
      <tfoot>
        {found && (
          <tr>
            <th scope="row">{found.label}</th>
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

function columnsOf({ view, rows, totals, found, distance, isComparing, onExplain }: CostTableProps): Column[] {
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
      found: found && money(found.cost),
    },
    {
      label: 'Share',
      className: 'share-column',
      cell: (of) => 'key' in of && share(of.cost),
      found: found && share(found.cost),
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
        cell: ({ cost, usage, unit }) => (usage && unit && unitPriceText(cost, usage, unit)) || '–',
      },
    );
  }
  if (distance === undefined) return columns;
  const unknown = isComparing ? '…' : 'not compared';
  return [
    ...columns,
    {
      label: distance,
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
      <button type="button" className="sort" data-order={order} onClick={() => navigate({ ...view, sort, page: 1 })}>
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
