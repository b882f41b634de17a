/**
 * The operator's session. The token is a key that no script can read, in memory alone, and is never
 * sent: each request has a signature with it, of a nonce that the relay gave (decision 0041).
 */
import { computed, signal } from '@preact/signals';

/** Milliseconds without use after which the token is forgotten. */
const idleTime = 15 * 60_000;
const idleCheck = 10_000;

/** An answer that is an error, in a sentence. */
class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** How far a verb is that takes long. */
export interface Progress {
  readonly step: string;
  readonly done: number;
}

const key = signal<CryptoKey | undefined>();
export const isSignedIn = computed(() => key.value !== undefined);
/** Why the session ended, if the operator did not end it. */
export const ending = signal('');

let lastUse = Date.now();
for (const use of ['keydown', 'pointerdown', 'touchstart', 'wheel']) {
  addEventListener(use, () => noteUse(), { capture: true, passive: true });
}
setInterval(endIfIdle, idleCheck);
// Timers stand still in a page that is not shown, and in a machine that sleeps.
document.addEventListener('visibilitychange', endIfIdle);
// A browser may keep the page in memory and show it again.
addEventListener('pagehide', () => signOut());

function noteUse(): void {
  endIfIdle();
  lastUse = Date.now();
}

function endIfIdle(): void {
  if (Date.now() - lastUse < idleTime) return;
  signOut('You were signed out after 15 minutes without use.');
}

/**
 * Signs in with the token, as it is in its file.
 *
 * @throws Refusal if the text is no token or not the relay's
 */
export async function signIn(text: string): Promise<void> {
  const token = text.trim();
  if (!/^[0-9a-f]{64}$/.test(token)) {
    throw new Refusal('bad_request', 'This is no token: it has 64 characters, 0 to 9 and a to f.');
  }
  const bytes = Uint8Array.from(token.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  const found = await crypto.subtle.importKey(
    ...(['raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']] as const),
  );
  bytes.fill(0);
  try {
    await readJson(await send(found, { method: 'GET', path: '/admin/v1/verbs' }));
  } catch (error) {
    if (error instanceof Refusal && error.code === 'unauthorized') {
      throw new Refusal(error.code, 'This is not the token of this relay.');
    }
    throw error;
  }
  lastUse = Date.now();
  ending.value = '';
  key.value = found;
}

/** Forgets the token. */
export function signOut(why = ''): void {
  if (key.value === undefined) return;
  ending.value = why;
  key.value = undefined;
}

/**
 * Runs a verb of the relay.
 *
 * @param progress takes how far a verb is that takes long
 * @throws Refusal
 */
export async function call<Result>(
  verb: `${string}/${string}`,
  params: object = {},
  progress?: (state: Progress) => void,
): Promise<Result> {
  const asked = {
    ...{ method: 'POST', path: `/admin/v1/${verb}`, body: JSON.stringify(params) },
    accept: progress === undefined ? 'application/json' : 'application/x-ndjson',
  };
  const own = key.value;
  if (own === undefined) throw new Refusal('unauthorized', 'You are signed out.');
  let answer = await send(own, asked);
  // A relay that was started anew does not know the nonce of the one before.
  if (answer.status === 401) answer = await send(own, asked);
  if (answer.status === 401) {
    signOut('The relay takes this token no longer: sign in with the one that it has now.');
  }
  const isLines = answer.headers.get('content-type')?.startsWith('application/x-ndjson');
  return (await (isLines ? readLines(answer, progress) : readJson(answer))) as Result;
}

/** Reads something that needs no token. */
export async function read(path: '/health' | '/metrics'): Promise<string> {
  return await (await ask(path, {})).text();
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly accept?: string;
}

async function send(own: CryptoKey, { method, path, body, accept }: Asked): Promise<Response> {
  const encoder = new TextEncoder();
  const challenge = hex(crypto.getRandomValues(new Uint8Array(32)));
  const { nonce } = (await readJson(await ask(`/admin/v1/proof?challenge=${challenge}`, {}))) as {
    readonly nonce: string;
  };
  const digest = hex(await crypto.subtle.digest('SHA-256', encoder.encode(body ?? '')));
  const signed = encoder.encode(`posthouse admin request\n${nonce}\n${path}\n${digest}`);
  const signature = hex(await crypto.subtle.sign('HMAC', own, signed));
  return await ask(path, {
    ...{ method, ...(body !== undefined && { body }) },
    headers: {
      authorization: `Posthouse ${nonce} ${digest} ${signature}`,
      'content-type': 'application/json',
      accept: accept ?? 'application/json',
    },
  });
}

async function ask(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(path, {
      ...{ cache: 'no-store', credentials: 'omit', redirect: 'error' },
      ...options,
    });
  } catch {
    throw new Refusal(
      'temporarily_unavailable',
      'The relay does not answer. Does it run, and is the tunnel to it open?',
    );
  }
}

const hex = (bytes: Uint8Array | ArrayBuffer) =>
  Array.from(new Uint8Array(bytes as ArrayBuffer), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');

async function readJson(answer: Response): Promise<unknown> {
  return checkedValue(answer.status, await answer.json().catch(() => undefined));
}

/** Reads lines of progress, and the answer in the last one. */
async function readLines(answer: Response, progress?: (state: Progress) => void): Promise<unknown> {
  let rest = '';
  let last: unknown;
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      const lines = (rest + part.value).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        last = JSON.parse(line);
        const { progress: state } = last as { readonly progress?: Progress };
        if (state !== undefined) progress?.(state);
      }
    }
  } catch {
    last = undefined;
  }
  const { status = 0, value } = (last ?? {}) as {
    readonly status?: number;
    readonly value?: unknown;
  };
  return checkedValue(status, value);
}

/** @throws Refusal */
function checkedValue(status: number, value: unknown): unknown {
  if (status === 200 && typeof value === 'object' && value !== null) return value;
  const { code = 'internal_error', message } = (value ?? {}) as {
    readonly code?: string;
    readonly message?: string;
  };
  throw new Refusal(
    code,
    message ?? 'The answer broke off. Look whether it was done, and try again.',
  );
}
