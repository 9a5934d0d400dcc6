/**
 * The part of PromQL that our alerts and panels use. What it does not know is an error, be it a slip or something new: then
 * it is added here.
 */

/** A series that an expression reads, with the labels that it selects by. */
interface Selector {
  readonly name: string;
  readonly labels: readonly string[];
}

export interface Expression {
  readonly selectors: readonly Selector[];
  /** Those that it groups or joins by. */
  readonly labels: readonly string[];
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?[smhd]?|[A-Za-z_:][\w:]*|=~|!~|[=!<>]=|[-+*/<>=(){}[\],])/y;
const AGGREGATIONS = ['sum', 'min', 'max'];
const FUNCTIONS = ['absent', 'histogram_quantile', 'increase', 'rate', 'time'];
const OPERATORS = ['+', '-', '*', '/', '==', '!=', '<', '>', '<=', '>=', 'and', 'or', 'unless'];
const MATCHERS = ['=', '!=', '=~', '!~'];
const NAME = /^[A-Za-z_:][\w:]*$/;
const NUMBER = /^\d+(\.\d+)?$/;
const RANGE = /^\d+[smhd]$/;

/** @throws Error that says where the text stops making sense */
export function parseExpression(text: string): Expression {
  // Grafana replaces this.
  const tokens = tokensOf(text.replaceAll('$__rate_interval', '5m'));
  const selectors: Selector[] = [];
  const grouping: string[] = [];
  let at = 0;

  const fail = (): never => {
    throw new Error(`not an expression at "${tokens[at] ?? 'its end'}": ${text}`);
  };
  const take = (fits: (token: string) => boolean): string => {
    const token = tokens[at];
    if (token === undefined || !fits(token)) return fail();
    at += 1;
    return token;
  };
  const takeIf = (token: string): boolean => {
    if (tokens[at] !== token) return false;
    at += 1;
    return true;
  };
  const expect = (token: string) => take((found) => found === token);
  const list = (close: string, item: () => void) => {
    if (takeIf(close)) return;
    do item();
    while (takeIf(','));
    expect(close);
  };
  const labels = () => {
    expect('(');
    list(')', () => grouping.push(take((token) => NAME.test(token))));
  };

  const expression = () => {
    operand();
    while (OPERATORS.includes(tokens[at] ?? '')) {
      at += 1;
      if (takeIf('on')) labels();
      operand();
    }
  };
  const operand = () => {
    if (takeIf('(')) {
      expression();
      expect(')');
    } else if (NUMBER.test(tokens[at] ?? '')) at += 1;
    else named(take((token) => NAME.test(token)));
  };
  const named = (name: string) => {
    const aggregates = AGGREGATIONS.includes(name);
    if (aggregates && takeIf('by')) labels();
    if (!aggregates && !FUNCTIONS.includes(name)) return selector(name);
    expect('(');
    list(')', expression);
  };
  const selector = (name: string) => {
    const chosen: string[] = [];
    if (takeIf('{'))
      list('}', () => {
        chosen.push(take((token) => NAME.test(token)));
        take((token) => MATCHERS.includes(token));
        take((token) => token.startsWith('"'));
      });
    if (takeIf('[')) {
      take((token) => RANGE.test(token));
      expect(']');
    }
    selectors.push({ name, labels: chosen });
  };

  expression();
  if (at < tokens.length) fail();
  return { selectors, labels: grouping };
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  const end = text.trimEnd().length;
  while (TOKEN.lastIndex < end) {
    const from = TOKEN.lastIndex;
    const [, token] = TOKEN.exec(text) ?? [];
    if (token === undefined) throw new Error(`not an expression at character ${from}: ${text}`);
    tokens.push(token);
  }
  return tokens;
}
