/** The scripts that are started by address. No other address becomes one (Trusted Types). */
declare const WORKER_FILE: string;
declare const HAND_BACK_FILE: string;

/** Names relative to the page; the build knows those of the workers. */
const scripts = { worker: WORKER_FILE, handBack: HAND_BACK_FILE, serviceWorker: 'sw.js' } as const;

interface PolicyFactory {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
const policy = trustedTypes?.createPolicy('posthouse', {
  createScriptURL(url) {
    if (Object.values(scripts).includes(url)) return url;
    throw new TypeError(`${url} is no script of this page`);
  },
});

/** Returns the address of a script as the browser wants it: text, or a trusted one. */
export function scriptUrl(script: keyof typeof scripts): string {
  const url = scripts[script];
  return (policy?.createScriptURL(url) ?? url) as string;
}
