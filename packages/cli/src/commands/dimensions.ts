import { BILLING_DIMENSIONS, DIMENSIONS, UNIT_NAME } from '@meterline/catalog';
import type { Command } from 'commander';
import { type CommandContext, printResult, say } from '../command.js';
import { type JsonFlag, withJson } from '../flags.js';
import { layoutFor, textTable } from '../output/table.js';
import { type BookFlags, openBook, priceText, withBook } from '../prices/book.js';

type DimensionsFlags = BookFlags & JsonFlag;

const COLUMNS = [{ heading: 'DIMENSION' }, { heading: 'TYPE' }, { heading: 'UNIT' }, { heading: 'PRICE' }];
const NO_PRICE = 'none yet';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('dimensions')
    .description(
      'Lists the billing dimensions: what each belongs to, its unit, and its price. GB-s are gigabyte-seconds; a month is ' +
        '730 hours.\nAsks no server.',
    )
    .action((flags: DimensionsFlags) => listDimensions(context, flags));
  withJson(withBook(command));
}

async function listDimensions(context: CommandContext, flags: DimensionsFlags): Promise<void> {
  const { book, account, at, origin } = await openBook(context, flags);
  const dimensions = BILLING_DIMENSIONS.map((billingDimension) => {
    const price = book.priceAt(account, billingDimension, at);
    return { billingDimension, ...DIMENSIONS[billingDimension], price };
  });
  const result = dimensions.map(({ price, ...dimension }) => ({
    ...dimension,
    price: price ? { currency: 'USD', amount: price.amount, per: price.per } : null,
  }));
  const rows = dimensions.map(({ billingDimension, resourceType, unit, price }) => ({
    cells: [billingDimension, resourceType, UNIT_NAME[unit], price ? priceText(price, unit) : NO_PRICE],
  }));
  printResult(context, flags.json, result, textTable(COLUMNS, rows, layoutFor(context)));
  say(context, origin);
}
