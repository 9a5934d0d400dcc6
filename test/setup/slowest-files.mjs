/** A jest reporter: prints the slowest files after a run of many files. */
import { relative } from 'node:path';

const SHOWN = 10;

export default class SlowestFiles {
  onRunComplete(_contexts, { testResults }) {
    if (testResults.length <= SHOWN) return;
    const files = testResults
      .map(({ testFilePath, perfStats: { runtime } }) => ({ file: relative(process.cwd(), testFilePath), runtime }))
      .sort((a, b) => b.runtime - a.runtime);
    const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1).padStart(7)} s`;
    const sum = files.reduce((total, { runtime }) => total + runtime, 0);
    console.log(`\nThe ${SHOWN} slowest of ${files.length} files, which together took ${seconds(sum).trim()}:`);
    for (const { file, runtime } of files.slice(0, SHOWN)) console.log(`${seconds(runtime)}  ${file}`);
  }
}
