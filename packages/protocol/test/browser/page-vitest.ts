/**
 * Stands in for `vitest` where its test files run inside a page: registers tests as Vitest does and
 * runs them one after another, with Vitest's own matchers. Only what those files use is here.
 */
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  addCustomEqualityTesters,
  chai,
  GLOBAL_EXPECT,
  getState,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect';

/** What a run in a page comes to. */
export interface PageReport {
  readonly passed: number;
  /** Titles of tests that were skipped. */
  readonly skipped: readonly string[];
  readonly failed: readonly { readonly title: string; readonly message: string }[];
}

type Body = (...values: never[]) => unknown;

const path: string[] = [];
const tests: { readonly title: string; readonly body: (() => unknown) | undefined }[] = [];

function registerTest(title: string, body: () => unknown): void {
  tests.push({ title: [...path, title].join(' > '), body });
}

function registerSuite(title: string, body: () => unknown): void {
  path.push(title);
  body();
  path.pop();
}

/** Registers once for each case; the case is spread where it is an array, as Vitest does it. */
function each(register: (title: string, body: () => unknown) => void) {
  return (cases: readonly unknown[]) => (title: string, body: Body) => {
    for (const [index, item] of cases.entries()) {
      const values = (Array.isArray(item) ? item : [item]) as never[];
      register(`${index}: ${filledIn(title, item)}`, () => body(...values));
    }
  };
}

/** A title with its `$name`s filled in from the case, which counts as reading them. */
function filledIn(title: string, item: unknown): string {
  return title.replaceAll(/\$(\w+)/g, (_all, name: string) =>
    String((item as Record<string, unknown>)[name]),
  );
}

export const describe = Object.assign(registerSuite, { each: each(registerSuite) });
export const test = Object.assign(registerTest, {
  each: each(registerTest),
  skip: (title: string) => {
    tests.push({ title: [...path, title].join(' > '), body: undefined });
  },
});

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

const globals = globalThis as unknown as Record<symbol, object>;

export const expect = Object.assign(
  (value: unknown, message?: string) => chai.expect(value, message),
  chai.expect,
  globals[ASYMMETRIC_MATCHERS_OBJECT],
);
globals[GLOBAL_EXPECT] = expect;
addCustomEqualityTesters([]);
setState({ ...getState(expect as never), assertionCalls: 0 }, expect as never);

/** Runs everything that was registered. */
export async function runRegistered(): Promise<PageReport> {
  const failed: { title: string; message: string }[] = [];
  const skipped: string[] = [];
  for (const { title, body } of tests) {
    if (body === undefined) {
      skipped.push(title);
      continue;
    }
    try {
      await body();
    } catch (error) {
      failed.push({ title, message: error instanceof Error ? error.message : String(error) });
    }
  }
  return { passed: tests.length - failed.length - skipped.length, skipped, failed };
}
