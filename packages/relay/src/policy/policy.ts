/** What the operator's program decides of calls. */
import { ProtocolError } from '@posthouse/protocol';
import { ConfigError, type RelayConfig } from '../config/index.ts';
import { customerNetwork } from '../config/ip-address.ts';
import type { Policy, PolicyQuestion, RelayContext } from '../context.ts';
import { policyAsked } from '../observability/policy-events.ts';
import { unavailable } from '../storage/unavailable.ts';
import { PolicyProgram } from './program.ts';
import { requireProgram } from './require-program.ts';
import { QuestionSlots } from './slots.ts';

/** Questions of all accounts that wait for their turn. */
const mostWaiting = 1_024;

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;

/** Allows all, without a question. */
export const noPolicy: Policy = { isOn: false, ask: async () => {} };

/**
 * Starts the program of the configuration, if there is one.
 *
 * @param parts.parts ends the program with the relay
 * @throws ConfigError if it cannot be run
 */
export async function openPolicy(
  { policy }: Pick<RelayConfig, 'policy'>,
  parts: Parts & { readonly parts: AsyncDisposableStack },
): Promise<Policy> {
  const { command, onFailure } = policy;
  if (command.length === 0) return noPolicy;
  const start = async () => {
    await requireProgram(command[0] as string);
    return await PolicyProgram.start(command, parts);
  };
  const program = await start().catch((error: Error) => {
    throw new ConfigError([`policy.command: ${error.message}`]);
  });
  return new AskedPolicy(parts.parts.use(program), parts, onFailure);
}

/** Asks a program, a limited number of questions at once; others wait. */
export class AskedPolicy implements Policy {
  readonly isOn = true;
  readonly #program: Pick<PolicyProgram, 'ask'>;
  readonly #parts: Parts;
  readonly #onFailure: 'refuse' | 'allow';
  readonly #slots: QuestionSlots;

  constructor(program: Pick<PolicyProgram, 'ask'>, parts: Parts, onFailure: 'refuse' | 'allow') {
    this.#program = program;
    this.#parts = parts;
    this.#onFailure = onFailure;
    this.#slots = new QuestionSlots(parts.limits.policyQuestions, mostWaiting);
  }

  async ask(question: PolicyQuestion, homeRelay?: string): Promise<void> {
    const { clock, limits, metrics } = this.#parts;
    const asker = { owner: ownerOf(question, homeRelay), account: question.account };
    if (this.#slots.waitingOf(asker) >= limits.policyQuestionsOfAccount) {
      throw new ProtocolError('rate_limited', 'too many of these calls at once: wait for answers', {
        data: { retry_after: 1 },
      });
    }
    // Never by `onFailure`: a flood of questions must not be a way past the program.
    if (!(await this.#slots.take(asker))) throw unavailable('too many calls wait: try again');
    const started = clock.monotonic();
    // Not given back when the time has passed: what the program has not read yet must stay bounded.
    const isAllowed = await this.#program.ask(question, () => this.#slots.give());
    const milliseconds = clock.monotonic() - started;
    policyAsked({ metrics }, { ask: question.ask, isAllowed, milliseconds });
    if (isAllowed === true) return;
    if (isAllowed === false) {
      throw new ProtocolError('forbidden', 'the rules of this relay do not allow it');
    }
    if (this.#onFailure === 'allow') return;
    throw unavailable('the relay cannot ask for a decision now: try again later');
  }
}

/** Returns who has one turn with all of its accounts: a relay may have as many as it likes. */
function ownerOf({ ask, account, address }: PolicyQuestion, homeRelay?: string): string {
  if (ask === 'account') return `network ${customerNetwork(address)}`;
  return homeRelay === undefined ? `account ${account}` : `relay ${homeRelay}`;
}
