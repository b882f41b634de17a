/** Browsers of any engine, as the tests drive them: one interface, three ways of talking to them. */

/** A page of a browser. */
export interface Page {
  /** Runs an expression in the page and returns what its promise comes to, as JSON. */
  run<T>(expression: string): Promise<T>;
  /** Opens an address, also the one that is open, and waits until it is loaded. */
  open(url: string): Promise<void>;
  /** Gives the page a window of its own size, in CSS pixels, and waits until the page has it. */
  resize(width: number, height: number): Promise<void>;
  /** Returns a picture of what is shown, as PNG. */
  picture(): Promise<Buffer>;
}

/** A browser with one page. Certificates are not checked. */
export interface Browser extends AsyncDisposable {
  readonly page: Page;
  /** Errors that the browser itself reports to its console; WebDriver has none of them. */
  readonly complaints: readonly string[];
}

/** An expression that waits until a condition, an expression, is true in the page. */
export const untilTrue = (condition: string) => `(async () => {
  while (!(${condition})) await new Promise((resolve) => setTimeout(resolve, 10));
})()`;

/** The text of an expression's outcome; the page's end of {@link outcomeOf}. */
export const asOutcome = (expression: string) =>
  `Promise.resolve().then(() => (${expression})).then(
    (value) => JSON.stringify({ value }),
    (error) => JSON.stringify({ error: String(error?.stack ?? ''), message: String(error?.message ?? error), code: error?.code }),
  )`;

/** The value of {@link asOutcome}, or its error. */
export function outcomeOf<T>(text: string): T {
  const { value, error, message, code } = JSON.parse(text);
  if (error === undefined) return value as T;
  throw Object.assign(new Error(`in the page: ${message}\n${error}`), { code });
}

/** Waits for a line of a started program that matches, and returns the match. */
export function lineOf(
  stream: NodeJS.ReadableStream,
  pattern: RegExp,
  program: string,
): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = '';
    stream.on('data', (piece: Buffer) => {
      text += piece.toString();
      const match = pattern.exec(text);
      if (match !== null) resolve(match);
    });
    stream.on('end', () => reject(new Error(`${program} has ended: ${text}`)));
  });
}
