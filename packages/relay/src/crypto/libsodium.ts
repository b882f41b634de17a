import { fromHex, utf8 } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import type { CryptoWorker } from './crypto-worker.ts';
import type { SignatureEngine } from './engine.ts';
import { loadSodium, type Sodium } from './sodium.ts';
import { decodeResults, encodeChecks } from './verify-batch.ts';

/** A check, and who waits for it. */
interface Waiting {
  readonly check: SignatureCheck;
  readonly resolve: (isValid: boolean | undefined) => void;
}

/** So many checks are sent at once, without waiting for the end of the turn. */
const batchSize = 16;

/** Longer messages are not copied for the worker, and would hold the checks after them. */
const largestMessage = 16_384;

/**
 * Verifies Ed25519 signatures with libsodium in a worker thread: in half the CPU time of OpenSSL on
 * the thread pool, and the checks of a turn cost the event loop one message. A check that is alone
 * in its turn, while the worker has none, is verified on the event loop: to wake two threads would
 * take longer.
 */
export class LibsodiumEngine implements SignatureEngine {
  readonly #worker: CryptoWorker;
  /** Checks of this turn that are not sent yet. */
  #gathered: Waiting[] = [];
  /** Requests that the worker has not answered. */
  #underWay = 0;
  /** libsodium on the event loop; absent until {@link begin}. */
  #sodium: Sodium | undefined;

  constructor(worker: CryptoWorker) {
    this.#worker = worker;
  }

  /** Whether it verifies this check now; the others are for the thread pool. */
  serves({ scheme, message }: SignatureCheck): boolean {
    const isReady = this.#sodium !== undefined && this.#worker.isRunning;
    return isReady && scheme === 'ed25519' && message.length <= largestMessage;
  }

  verify(check: SignatureCheck): Promise<boolean | undefined> {
    return new Promise((resolve) => {
      const count = this.#gathered.push({ check, resolve });
      if (count === batchSize) this.#send();
      else if (count === 1) setImmediate(() => this.#send());
    });
  }

  /**
   * Begins to serve checks if the library gives the known answers.
   *
   * @param load loads the library, or says why it cannot
   * @throws Error without libsodium, or with one that verifies by other rules than 01 §5.2
   */
  begin(load: () => Sodium | string = loadSodium): void {
    const sodium = load();
    if (typeof sodium === 'string') throw new Error(sodium);
    const isRight = knownAnswers.every(
      ({ check, isValid }) => verifyWith(sodium, check) === isValid,
    );
    if (!isRight) throw new Error('libsodium does not verify by the rules of chapter 01, 5.2');
    this.#sodium = sodium;
  }

  #send(): void {
    const batch = this.#gathered;
    if (batch.length === 0) return;
    this.#gathered = [];
    const [first] = batch;
    if (this.#sodium && first && batch.length + this.#underWay === 1) {
      first.resolve(verifyWith(this.#sodium, first.check));
      return;
    }
    this.#underWay += 1;
    const buffer = encodeChecks(batch.map(({ check }) => check));
    void this.#worker.ask({ kind: 'verify', buffer }).then((answer) => {
      this.#underWay -= 1;
      const results = answer?.buffer === undefined ? [] : decodeResults(answer.buffer);
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
    });
  }
}

function verifyWith(sodium: Sodium, { publicKey, message, signature }: SignatureCheck): boolean {
  return sodium.crypto_sign_verify_detached(signature, message, publicKey);
}

const known = {
  scheme: 'ed25519',
  publicKey: fromHex('edc876d6831fd2105d0b4389ca2e283166469289146e2ce06faefe98b22548df'),
  message: utf8('known answer'),
  signature: fromHex(
    'b862409fb5c4c4123df2abf7462b88f041ad36dd6864ce872fd5472be363c5b1' +
      '951adeebb98ae627502048cec8acd384ab45de5a6adf6e4d9922e976d32aff07',
  ),
} as const;

/** Valid by the equation with the cofactor only: libraries differ in it. */
const cofactored = fromHex(
  '16b981d0b88cdf3ab9fa87190822fe4905b475efda3aec7c34abfa92c19320f4' +
    '8e98b862313447c8198bc27d7b34e781ea89d333017a2ddef85bc8f090643d0f',
);

const knownAnswers: readonly { readonly check: SignatureCheck; readonly isValid: boolean }[] = [
  { check: known, isValid: true },
  { check: { ...known, message: utf8('another message') }, isValid: false },
  { check: { ...known, signature: cofactored }, isValid: false },
];
