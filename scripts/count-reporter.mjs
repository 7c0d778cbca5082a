// Tells scripts/test.mjs how many tests passed and failed. A test file that does not load, and an error outside any
// test, are one failure each.
import { writeFileSync } from 'node:fs';

// Vitest loads a reporter by its default export.
export default class CountReporter {
  onTestRunEnd(testModules, unhandledErrors) {
    let passed = 0;
    let failed = unhandledErrors.length;
    for (const testModule of testModules) {
      failed += testModule.errors().length;
      for (const suite of testModule.children.allSuites()) failed += suite.errors().length;
      for (const test of testModule.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
      }
    }
    const file = process.env.REMORA_TEST_COUNTS;
    if (file) writeFileSync(file, JSON.stringify({ passed, failed }));
  }
}
