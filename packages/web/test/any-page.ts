/** What a person does with the messenger, in a page of any engine: by expressions that run in it. */
import type { Page } from '../../client/test/web/support/engine.ts';

/** Runs in the page before each step. What is looked for is waited for, as long as a busy machine may take. */
const helpers = `
  const until = async (find, what) => {
    for (const end = Date.now() + 30_000; ; ) {
      const found = await find();
      if (found) return found;
      if (Date.now() > end) throw new Error('not found: ' + what + ' in: ' + document.body.innerText);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
  const withText = (selector, text) => shown(selector).find((each) => each.textContent.includes(text));
  const button = (name) => until(() => shown('button').find((each) => each.textContent.trim() === name), name);
  const field = (label) => until(() => {
    const named = shown('label').find((each) => each.textContent.trim() === label);
    return named ? document.getElementById(named.htmlFor)
      : shown('input, textarea').find((each) => each.ariaLabel === label);
  }, label);
  const type = async (label, text) => {
    const into = await field(label);
    into.focus();
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(into), 'value').set.call(into, text);
    into.dispatchEvent(new InputEvent('input', { bubbles: true }));
    return into;
  };`;

/** Steps of a person in one page. */
export class AnyPage {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Opens the messenger, and notes what the page complains of from now on. */
  async open(url: string): Promise<void> {
    await this.#page.open(url);
    await this.#do(`
      globalThis.complaints = [];
      const complain = (...all) => complaints.push(all.map((one) => one?.message ?? String(one)).join(' '));
      for (const level of ['error', 'warn']) console[level] = complain;
      addEventListener('error', ({ message }) => complain('error', message));
      addEventListener('unhandledrejection', ({ reason }) => complain('rejection', reason));
      addEventListener('securitypolicyviolation', (event) => complain(event.violatedDirective, event.blockedURI));`);
  }

  complaints(): Promise<string[]> {
    return this.#do('return globalThis.complaints;');
  }

  click(name: string): Promise<void> {
    return this.#do(`(await button(${JSON.stringify(name)})).click();`);
  }

  /** Clicks the first element that a selector finds and that has the text. */
  clickText(selector: string, text: string): Promise<void> {
    const [found, what] = [JSON.stringify(selector), JSON.stringify(text)];
    return this.#do(`(await until(() => withText(${found}, ${what}), ${what})).click();`);
  }

  /** Opens all parts that are folded. */
  openParts(): Promise<void> {
    return this.#do(
      `for (const each of shown('main details:not([open]) > summary')) each.click();`,
    );
  }

  type(label: string, text: string): Promise<void> {
    return this.#do(`await type(${JSON.stringify(label)}, ${JSON.stringify(text)});`);
  }

  /** Types a text and presses Enter. */
  enter(label: string, text: string): Promise<void> {
    return this.#do(`const into = await type(${JSON.stringify(label)}, ${JSON.stringify(text)});
      into.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));`);
  }

  valueOf(label: string): Promise<string> {
    return this.#do(`return (await field(${JSON.stringify(label)})).value;`);
  }

  /** Waits until a shown element has the text. */
  see(text: string, selector = 'body'): Promise<void> {
    const [found, what] = [JSON.stringify(selector), JSON.stringify(text)];
    return this.#do(`await until(() => withText(${found}, ${what}), ${what});`);
  }

  /** Waits until a selector finds an element that is shown. */
  seeElement(selector: string): Promise<void> {
    const found = JSON.stringify(selector);
    return this.#do(`await until(() => shown(${found})[0], ${found});`);
  }

  /** Waits until no shown element has the text. */
  seeNo(text: string, selector = 'body'): Promise<void> {
    const [found, what] = [JSON.stringify(selector), JSON.stringify(text)];
    return this.#do(`await until(() => !withText(${found}, ${what}), 'an end of ' + ${what});`);
  }

  /** Texts of all shown elements. */
  texts(selector: string): Promise<string[]> {
    return this.#do(`return shown(${JSON.stringify(selector)}).map((each) => each.textContent);`);
  }

  /** Leads to the list of conversations, as the browser's own button does. */
  toList(): Promise<void> {
    return this.#do(`
      history.pushState(null, '', location.pathname);
      dispatchEvent(new PopStateEvent('popstate', { state: null }));`);
  }

  /** Opens what a link carries in the page that is open. */
  openLink(kind: 'group' | 'channel', address: string): Promise<void> {
    return this.#do(`location.hash = ${JSON.stringify(`${kind}=${encodeURIComponent(address)}`)};`);
  }

  /** Keeps what is saved next, for {@link saved}. */
  keepSaved(): Promise<void> {
    return this.#do(`
      const { createObjectURL } = URL;
      URL.createObjectURL = (blob) => {
        globalThis.saved = blob;
        return createObjectURL.call(URL, blob);
      };`);
  }

  /** Text of what was saved. */
  saved(): Promise<string> {
    return this.#do(`return await (await until(() => globalThis.saved, 'a saved file')).text();`);
  }

  /** Picks a file in the first field for files. */
  pick(name: string, content: string): Promise<void> {
    return this.#do(`
      const picked = new DataTransfer();
      picked.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}, { type: 'application/json' }));
      const into = await until(() => shown('input[type=file]')[0], 'a field for files');
      into.files = picked.files;
      into.dispatchEvent(new Event('change', { bubbles: true }));`);
  }

  /** Waits until the service worker has the files. */
  waitForServiceWorker(): Promise<void> {
    return this.#do('await navigator.serviceWorker.ready;');
  }

  #do<T>(steps: string): Promise<T> {
    return this.#page.run(`(async () => { ${helpers}\n${steps} })()`);
  }
}
