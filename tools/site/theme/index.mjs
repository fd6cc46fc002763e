import theme from 'vitepress/theme'

// A copy button of commands behind prompts copies the commands alone.
if (typeof document !== 'undefined') {
  document.addEventListener('click', (event) => {
    const block = event.target.closest?.('div.language-console')
    if (!block || !event.target.matches('button.copy')) return
    event.stopImmediatePropagation()
    const commands = block.querySelector('code').textContent.split('\n')
      .flatMap((line) => line.match(/^[a-z0-9]*[$#] +(.*)$/)?.[1] ?? [])
    navigator.clipboard.writeText(commands.join('\n') + '\n')
    event.target.classList.add('copied')
    setTimeout(() => event.target.classList.remove('copied'), 2000)
  }, true)
}

export default theme
