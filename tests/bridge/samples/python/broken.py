text = "你好 😀"; print(text, nowhere)
