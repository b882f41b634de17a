/**
 * What a run of tests writes for `.ci/run`: how many passed, and each failure with its name and text. A
 * failure is a test, a hook of a file or of a `describe` (vitest's own report in JSON has none of the
 * latter), a file that does not load, or an error outside a test.
 *
 * @example
 * TEST_REPORT=report.json npm test -- --reporter=default --reporter=./scripts/test-report.ts
 */
import { writeFileSync } from 'node:fs';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule, TestSuite } from 'vitest/node';

export interface TestReport {
  readonly passed: number;
  readonly failures: readonly { readonly name: string; readonly text: string }[];
}

type Errors = readonly (Pick<SerializedError, 'message'> & { readonly stack?: string })[];

// The stack of a test that took too long does not say so.
const textOfOne = ({ stack = '', message }: Errors[number]) =>
  stack.includes(message) ? stack : `${message}\n${stack}`;

const textOf = (errors: Errors) => errors.map(textOfOne).join('\n') || 'failed without an error';

const nameOf = (suite: TestSuite | TestModule) =>
  suite.type === 'module' ? suite.moduleId : `${suite.module.moduleId}: ${suite.fullName}`;

function failuresOf(module: TestModule): { name: string; text: string }[] {
  const suites = [module, ...module.children.allSuites()];
  const ofSuites = suites
    .filter((suite) => suite.errors().length > 0)
    .map((suite) => ({ name: nameOf(suite), text: textOf(suite.errors()) }));
  const ofTests = [...module.children.allTests('failed')].map((test) => ({
    name: `${module.moduleId}: ${test.fullName}`,
    text: textOf(test.result().errors ?? []),
  }));
  const all = [...ofSuites, ...ofTests];
  if (all.length > 0 || module.ok()) return all;
  return [{ name: module.moduleId, text: textOf([]) }];
}

export default class implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], outside: readonly SerializedError[]): void {
    const report: TestReport = {
      passed: modules.reduce(
        (sum, { children }) => sum + [...children.allTests('passed')].length,
        0,
      ),
      failures: [
        ...modules.flatMap(failuresOf),
        ...outside.map((error) => ({ name: 'outside a test', text: textOf([error]) })),
      ],
    };
    writeFileSync(process.env.TEST_REPORT ?? 'test-report.json', JSON.stringify(report));
  }
}
